/** The loop that ends a machine, with commands in place of the clock, the uptime and the power-off. */
import { expect, test } from "bun:test";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deadlineFiles } from "../../../../src/backend/shared/first-boot.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const deadline = 1_000_000;
const script = deadlineFiles(new Date(deadline * 1000)).find(({ name }) =>
  name.endsWith("sbin/cluster-e2e-deadline"),
)!.text;

interface Course {
  readonly now: number;
  /** How far the clock is set, in seconds, after so many seconds. */
  readonly jumps?: Readonly<Record<number, number>>;
  readonly offset?: string;
  readonly shell?: string;
}

/** Returns after how many seconds the machine was powered off. */
async function run({ now, jumps = {}, offset, shell = "sh" }: Course): Promise<number> {
  await using folder = await scratchFolder();
  const at = (name: string): string => join(folder.path, name);
  await mkdir(at("bin"));
  await mkdir(at("run"));
  const command = async (name: string, text: string): Promise<void> => {
    await writeFile(at(`bin/${name}`), `#!/bin/sh\n${text}\n`);
    await chmod(at(`bin/${name}`), 0o755);
  };
  await writeFile(at("uptime"), "500.99 1.0\n");
  await writeFile(at("now"), `${now}\n`);
  if (offset !== undefined) await writeFile(at("run/cluster-e2e-clock-offset"), offset);
  await command("date", `cat ${at("now")}`);
  await command("systemctl", `[ -e ${at("off")} ] || cut -d . -f 1 ${at("uptime")} >${at("off")}`);
  const steps = Object.entries(jumps).map(
    ([second, by]) => `[ "$up" -ne ${500 + Number(second)} ] || now=$((now + ${by}))`,
  );
  const tick = ["up=$((up + 1)) now=$((now + 1))", ...steps].join("\n");
  await command(
    "sleep",
    `[ ! -e ${at("off")} ] || exit 0
up=$(cut -d . -f 1 ${at("uptime")}) now=$(cat ${at("now")})
for _ in $(seq "$1"); do
${tick}
done
echo "$up.99 1.0" >${at("uptime")}
echo "$now" >${at("now")}`,
  );
  const text = script.replaceAll("/run/", `${at("run")}/`).replaceAll("/proc/uptime", at("uptime"));
  const child = Bun.spawn([shell, "-c", text, "sh", String(deadline)], {
    env: { PATH: `${at("bin")}:/usr/bin:/bin` },
    stdout: "inherit",
    stderr: "inherit",
  });
  await child.exited;
  return Number(await readFile(at("off"), "utf8")) - 500;
}

test.each(["sh", "bash"])("a machine ends at its deadline, with %s", async (shell) => {
  expect(await run({ now: deadline - 300, shell })).toBe(300);
});

test.each([
  ["at once", { 1: -100_000 }],
  ["later", { 150: -3_600 }],
  ["again and again", { 10: -50, 100: -50, 200: -50, 290: -50 }],
])("a clock that is set back %s does not prolong its life", async (_, jumps) => {
  const seconds = await run({ now: deadline - 300, jumps });
  expect(seconds).toBeGreaterThanOrEqual(300);
  expect(seconds).toBeLessThanOrEqual(312);
});

test("a clock that was wrong at the boot, and is set right, does not prolong its life either", async () => {
  expect(await run({ now: deadline - 100_000, jumps: { 15: 99_700 } })).toBe(300);
});

test.each(["", "x\n", "1-2\n", "-\n", "9 9\n"])("a file of a fault that says %j counts as none", async (offset) => {
  expect(await run({ now: deadline - 30, offset })).toBe(30);
});

test("a clock that a fault has set ahead does not shorten its life", async () => {
  expect(await run({ now: deadline - 300 + 5_000, offset: "5000\n" })).toBe(300);
});

test("a machine whose time is over ends at once", async () => {
  expect(await run({ now: deadline + 5 })).toBe(0);
});
