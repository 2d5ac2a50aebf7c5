/** What the script of disks' faults does to a device, with the node's programs as functions of the shell. */
import { expect, test } from "bun:test";
import ioFile from "../../../../src/platform/faults/io.sh" with { type: "text" };
import healFile from "../../../../src/platform/faults/heal-faults.sh" with { type: "text" };
import unitFile from "../../../../src/platform/faults/fault-unit.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const linear = "0 2048 linear 7:0 0\n2048 2048 linear 7:1 64\n";
const values = { STALL: "", SLOW: 0, UP: 0, DOWN: 0 };

/** Begins a fault and heals it. Returns what it said, and what became of the device. */
async function play(
  given: Partial<typeof values>,
  table = linear,
  { system = "1", state = "Active" } = {},
) {
  await using scratch = await scratchFolder();
  const log = `${scratch.path}/log`;
  const script = `
${shellText(ioFile, { ID: "a0000000", FOLDER: scratch.path, IO: scratch.path, ...values, ...given })}
findmnt() { echo /dev/mapper/data; }
stat() { [ "$3" = "$IO" ] && echo 7 || echo ${system}; }
dmsetup() {
  case $1 in
    info) case $* in *suspended*) echo ${state} ;; *) echo data ;; esac ;;
    table) printf '${table.replaceAll("\n", "\\n")}' ;;
    reload) cat >>${log} ;;
    *) echo "$*" >>${log} ;;
  esac
}
fail() { echo "$*"; exit 1; }
(begin) && echo healing >>${log} && heal; ls ${scratch.path}`;
  const child = Bun.spawn(["sh", "-c", script], { stderr: "inherit" });
  const said = (await new Response(child.stdout).text()).trim();
  return {
    said,
    log: await Bun.file(log)
      .text()
      .catch(() => ""),
  };
}

const suspend = "suspend --noflush --nolockfs data\n";
const resume = "resume --noudevsync data\n";
const healed = `healing\n${linear}${suspend}${resume}`;

test.each([
  ["stalls", { STALL: "yes" }, suspend],
  [
    "is slow",
    { SLOW: 20 },
    `0 2048 delay 7:0 0 20\n2048 2048 delay 7:1 64 20\n${suspend}${resume}`,
  ],
  [
    "fails in turn",
    { UP: 9, DOWN: 1 },
    `0 2048 flakey 7:0 0 9 1\n2048 2048 flakey 7:1 64 9 1\n${suspend}${resume}`,
  ],
])("a device that %s is as before when it heals", async (_name, given, begun) => {
  expect(await play(given)).toEqual({ said: "log", log: `${begun}${healed}` });
});

test.each([
  ["0 2048 delay 7:0 0 20\n", {}, "data is not a plain volume, or has a fault already"],
  [linear, { state: "Suspended" }, "data is not a plain volume, or has a fault already"],
  [
    linear,
    { system: "7" },
    "is on the disk of /, without which nobody could log in or end the fault",
  ],
])("a device that has a fault, or the system's own, is left alone", async (table, others, why) => {
  const { said, log } = await play({ SLOW: 20 }, table, others);
  expect(said).toContain(why);
  expect(log).toBe("");
});

test("a fault whose device cannot get its table back is not healed, and can be healed again", async () => {
  await using scratch = await scratchFolder();
  const file = `${scratch.path}/a0000000.sh`;
  const own = { ID: "a0000000", FOLDER: scratch.path, UNIT_FILE: "unit", DURATION: 9, KIND: "io" };
  const script = `
${shellText(ioFile, { ...own, IO: scratch.path, ...values, STALL: "yes" })}
dmsetup() { [ "$1" != reload ] || { cat >/dev/null; [ -e ${scratch.path}/works ]; }; }
timeout() { :; }
${shellText(unitFile, { RECORD: "{}" })}`;
  await Bun.write(file, script);
  await Bun.write(`${scratch.path}/a0000000.record`, "9\n{}\n");
  await Bun.write(`${scratch.path}/a0000000.device`, "data\n");
  await Bun.write(`${scratch.path}/a0000000.table`, linear);
  const heal = async () => {
    const text = shellText(healFile, { FOLDER: scratch.path, UNIT_PREFIX: "none-" });
    const lines = `set -e\nsystemctl() { :; }\nfail() { echo "$*"; exit 1; }\n${text}main a0000000`;
    const child = Bun.spawn(["sh", "-c", lines], { stderr: "inherit" });
    return (await new Response(child.stdout).text()).trim().split("\n").at(-1);
  };
  expect(await heal()).toBe("fault a0000000 is still there");
  await Bun.write(`${scratch.path}/works`, "");
  expect(await heal()).toBe("");
  expect(await Bun.file(`${scratch.path}/a0000000.device`).exists()).toBe(false);
});

test("the read of a device that stalls holds no output of who asks", async () => {
  await using scratch = await scratchFolder();
  const script = `
${shellText(ioFile, { ID: "a0000000", FOLDER: scratch.path, IO: scratch.path, ...values })}
cd ${scratch.path}
mknod device p
sleep() { :; }
mktemp() { echo result; : >result; }
findmnt() { echo data; }
dd() { : >reads; read -r _ <device; }
dmsetup() {
  case $* in
    *suspended*) echo Suspended ;;
    info*) echo data ;;
    table*) echo 0 2048 linear 7:0 0 ;;
  esac
}
measure >said
until [ -e reads ]; do command sleep 0.1; done
find /proc/[0-9]*/fd -lname "$PWD/said" 2>/dev/null
cat said
echo >device`;
  const child = Bun.spawn(["sh", "-c", script], { stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toBe("target=suspended\nio=stalled\n");
});
