/** The queues that delay and damage packets: what tc is asked for, since not every kernel has netem. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import unitFile from "../../../../src/platform/faults/fault-unit.sh" with { type: "text" };
import networkFile from "../../../../src/platform/faults/network.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Begins faults one after the other, and returns the lines that tc got for the last one. */
async function tcLines(
  faults: readonly (readonly [id: string, netem: string, towards: string])[],
): Promise<readonly string[]> {
  await using scratch = await scratchFolder();
  const log = join(scratch.path, "log");
  const values = { FOLDER: scratch.path, ADDRESS: "10.0.0.1", PORT: 9999 };
  for (const [ID, NETEM, TOWARDS] of faults) {
    const script = `
${shellText(networkFile, { ...values, ID, NETEM, TOWARDS })}
ip() { echo "2: eth0 inet 10.0.0.1/24 scope global eth0"; }
tc() { echo "$*" >>${log}; }
lock() { :; }
fail() { echo "$*"; exit 1; }
: >${log}
begin && test -z "$(ls ${scratch.path} | grep -v -e log -e netem -e towards)"`;
    const child = Bun.spawn(["sh", "-eu", "-c", script], { stderr: "inherit" });
    expect([await new Response(child.stdout).text(), await child.exited]).toEqual(["", 0]);
  }
  return (await Bun.file(log).text()).trim().split("\n");
}

const queues = (lines: readonly string[]): readonly string[] =>
  lines
    .filter((line) => line.startsWith("qdisc add"))
    .map((line) => line.slice("qdisc add dev eth0 ".length));

test("faults of all packets are one behind the other, without ssh and the installer's server", async () => {
  const lines = await tcLines([
    ["a0000000", "delay 200ms", ""],
    ["b0000000", "corrupt 1%", ""],
  ]);
  expect(queues(lines)).toEqual([
    "root handle e2e: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    "parent e2e:2 handle e1: netem limit 10000 delay 200ms",
    "parent e1:1 handle e2: netem limit 10000 corrupt 1%",
  ]);
  const filters = lines.filter((line) => line.startsWith("filter add"));
  expect(filters.filter((line) => line.endsWith("flowid e2e:1"))).toHaveLength(3);
  expect(filters).toContain(
    "filter add dev eth0 parent e2e: protocol ip prio 3 u32 match u32 0 0 flowid e2e:2",
  );
});

test("a fault towards some nodes has a band of its own, which has the others behind it", async () => {
  const lines = await tcLines([
    ["a0000000", "delay 200ms", ""],
    ["b0000000", "loss 5%", "10.0.0.2 10.0.0.3"],
  ]);
  expect(queues(lines)).toEqual([
    "root handle e2e: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    "parent e2e:2 handle e1: netem limit 10000 delay 200ms",
    "parent e2e:3 handle e2: netem limit 10000 loss 5%",
    "parent e2:1 handle e3: netem limit 10000 delay 200ms",
  ]);
  const towards = lines.filter((line) => line.includes("prio 2 "));
  expect(towards).toEqual(
    ["10.0.0.2", "10.0.0.3"].map(
      (address) =>
        `filter add dev eth0 parent e2e: protocol ip prio 2 u32 match ip dst ${address}/32 flowid e2e:3`,
    ),
  );
});

test.each([
  [
    "a kernel without netem",
    "case $* in *netem*) return 2 ;; esac",
    /^queue=\nlack=tc cannot delay packets: .*sch_netem/,
  ],
  ["one with it", "", /^queue=\n$/],
  [
    "a fault that is there",
    'echo "qdisc netem e1: delay 200ms"',
    /^queue=qdisc netem e1: delay 200ms +\n$/,
  ],
])("measures before a fault whether it can begin: %s", async (_name, tc, expected) => {
  const script = `
${shellText(networkFile, { ID: "", ADDRESS: "10.0.0.1" })}
ip() { echo "2: eth0 inet 10.0.0.1/24 scope global eth0"; }
tc() { ${tc || ":"}; }
# Functions are no programs: it runs in this shell.
unshare() { [ "$2" = true ] || eval "$4"; }
measure`;
  const child = Bun.spawn(["sh", "-c", script], { stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toMatch(expected);
});

test("of two faults that end at the same moment, none leaves its queue", async () => {
  await using scratch = await scratchFolder();
  const at = (name: string): string => join(scratch.path, name);
  const shared = { FOLDER: scratch.path, ADDRESS: "10.0.0.1", PORT: 9999, TOWARDS: "" };
  for (const ID of ["a0000000", "b0000000"]) {
    const own = { ...shared, ID, NETEM: "delay 200ms", UNIT_FILE: at("unit"), DURATION: 9 };
    await Bun.write(at(`${ID}.netem`), "delay 200ms\n");
    await Bun.write(
      at(`${ID}.sh`),
      `${shellText(networkFile, { ...own, KIND: "network" })}
ip() { echo "2: eth0 inet 10.0.0.1/24 scope global eth0"; }
timeout() { :; }
# The first of them that adds its queue is slow.
tc() {
  case $* in
    "qdisc del"*) rm -f ${at("queue")} ;;
    "qdisc add"*root*) if mkdir ${at("slow")} 2>/dev/null; then sleep 0.3; fi && : >${at("queue")} ;;
  esac
}
${shellText(unitFile, { RECORD: "{}" })}`,
    );
  }
  const both = `sh ${at("a0000000.sh")} heal & sh ${at("b0000000.sh")} heal & wait; ls`;
  const child = Bun.spawn(["sh", "-c", both], { cwd: scratch.path, stderr: "inherit" });
  expect((await new Response(child.stdout).text()).trim()).toBe("slow");
});
