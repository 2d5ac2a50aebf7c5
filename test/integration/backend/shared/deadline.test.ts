/** The loop that ends a machine, with commands in place of the clock, the uptime and the power-off. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deadlineFiles, deadlineSetup } from "../../../../src/backend/shared/first-boot.ts";
import clockFile from "../../../../src/platform/faults/clock.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
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

const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
const otherBoot = "00000000-0000-4000-8000-000000000000";

test.each([
  "",
  "x\n",
  "5000\n",
  `${boot} x 9000\n`,
  `${boot} 1-2 9000\n`,
  `${boot} - 9000\n`,
  `${boot} 5000\n`,
  `${boot} 5000 x\n`,
  `${boot} 5000 9000 9000\n`,
  `${boot} 5000000000000 9000\n`,
  `${boot} 5000 9000000000000\n`,
  `${otherBoot} 5000 9000\n`,
  `${boot} 5000 500\n`,
])("a file of a fault that says %j counts as none", async (offset) => {
  expect(await run({ now: deadline - 30, offset })).toBe(30);
});

test("a clock that a fault has set ahead does not shorten its life", async () => {
  expect(await run({ now: deadline - 300 + 5_000, offset: `${boot} 5000 9000\n` })).toBe(300);
});

test("a clock that nobody has healed counts as right after the end of its fault", async () => {
  const seconds = await run({ now: deadline - 300 + 5_000, offset: `${boot} 5000 600\n` });
  expect(seconds).toBeGreaterThanOrEqual(100);
  expect(seconds).toBeLessThanOrEqual(110);
});

/** What a fault of the clock writes that began 500 seconds after the boot, and its healing. */
async function writtenByFault(durationSeconds: number, healed: boolean): Promise<string> {
  await using folder = await scratchFolder();
  const at = (name: string): string => join(folder.path, name);
  await writeFile(at("uptime"), "500.99 1.0\n");
  await writeFile(at("systemd-detect-virt"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const values = { ID: "0123abcd", FOLDER: folder.path, OFFSET: 5_000, DURATION: durationSeconds };
  const text = `${shellText(clockFile, { ...values, DEADLINE_OFFSET: at("offset") })}
PATH=${folder.path}:$PATH
systemctl() { return 1; }
lock() { :; }
date() { echo 1700000000.5; }
fail() { echo "$*" >&2; exit 1; }
begin${healed ? " && heal" : ""}`;
  const child = Bun.spawn(["sh", "-c", text.replaceAll("/proc/uptime", at("uptime"))], {
    stderr: "inherit",
  });
  expect(await child.exited).toBe(0);
  return await readFile(at("offset"), "utf8");
}

test("a fault's file counts for the fault's duration, and ten minutes in which it is begun and healed", async () => {
  expect(await writtenByFault(60, false)).toBe(`${boot} 5000 1160\n`);
  expect(await run({ now: deadline - 300 + 5_000, offset: await writtenByFault(60, false) })).toBe(
    300,
  );
  expect(await run({ now: deadline - 300, offset: await writtenByFault(60, true) })).toBe(300);
});

/** What `set-deadline.sh` has systemd do. */
async function calls(text: string): Promise<readonly string[]> {
  await using folder = await scratchFolder();
  const at = (name: string): string => join(folder.path, name);
  await mkdir(at("etc/systemd/system"), { recursive: true });
  const moved = text
    .replaceAll("/etc/", `${at("etc")}/`)
    .replaceAll("/usr/local/", `${at("usr")}/`);
  const child = Bun.spawn(["sh", "-c", `systemctl() { echo "$*"; }\n${moved}`], {
    stderr: "inherit",
  });
  const stdout = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return stdout.trim().split("\n");
}

test("nothing but its own removal stops the unit that ends a machine, so another deadline kills it", async () => {
  const unit = deadlineFiles(new Date()).find(({ name }) =>
    name.endsWith("cluster-e2e-deadline.service"),
  )!.text;
  for (const line of [
    "RefuseManualStop=yes",
    "IgnoreOnIsolate=yes",
    "StartLimitInterval=0",
    "Restart=always",
  ])
    expect(unit.split("\n")).toContain(line);
  const set = await calls(deadlineSetup(new Date()));
  expect(set).toEqual([
    "daemon-reload",
    "enable cluster-e2e-deadline.service",
    "kill --signal=KILL cluster-e2e-deadline.service",
    "--no-block start cluster-e2e-deadline.service",
  ]);
  // The file is gone by then, and the refusal with it.
  expect(await calls(deadlineSetup(undefined))).toEqual([
    "daemon-reload",
    "stop cluster-e2e-deadline.service",
  ]);
});

test("a machine whose time is over ends at once", async () => {
  expect(await run({ now: deadline + 5 })).toBe(0);
});
