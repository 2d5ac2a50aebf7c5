import { expect, test } from "bun:test";
import { hostname } from "node:os";
import {
  commandOfProcess,
  identifyThisProcess,
  isProcessAlive,
  readBootId,
  signalProcess,
} from "../../../../src/system/processes/process-identity.ts";
import { until } from "../../../support/until.ts";

/** The identity of a process of this machine, from the kernel's own file. */
async function identityOf(pid: number) {
  const boot = (await Bun.file("/proc/sys/kernel/random/boot_id").text()).trim();
  return { pid, host: hostname(), startedAt: `${boot}:${(await fieldsOf(pid))[19]}` };
}

/** The fields after the program's name: first the state. */
const fieldsOf = async (pid: number): Promise<readonly string[]> =>
  (await Bun.file(`/proc/${pid}/stat`).text()).replace(/^.*\) /s, "").split(" ");

test.skipIf(process.platform !== "linux")(
  "a process that has ended counts as ended before its parent notices",
  async () => {
    // The child ends once the shell has become a program that never waits for it.
    await using parent = Bun.spawn(
      ["sh", "-c", "(until grep -q sleep /proc/$$/comm; do :; done) & echo $!; exec sleep 600"],
      { stdout: "pipe" },
    );
    const { value } = await parent.stdout.getReader().read();
    const child = Number(new TextDecoder().decode(value));
    while ((await fieldsOf(child))[0] !== "Z") await Bun.sleep(5);
    expect(await isProcessAlive(await identityOf(child))).toBe(false);
    expect(await isProcessAlive(await identityOf(parent.pid))).toBe(true);
  },
);

test("this process is alive, another with its id is not, and one of another host may be", async () => {
  const own = (await identifyThisProcess())!;
  expect(await isProcessAlive(own)).toBe(true);
  expect(await isProcessAlive({ ...own, startedAt: `${own.startedAt}1` })).toBe(false);
  expect(await isProcessAlive({ ...own, startedAt: "x", host: "another" })).toBe(true);
});

test("a process has a command line until it is ended", async () => {
  await using child = Bun.spawn(["sleep", "600"]);
  // A process that has just been started may have none yet.
  await until("the command line", async () => (await commandOfProcess(child.pid)) === "sleep 600");
  await signalProcess(child.pid, "TERM");
  await child.exited;
  expect(child.signalCode).toBe("SIGTERM");
  expect(await commandOfProcess(child.pid)).toBeUndefined();
  // Nobody is left to get it.
  await signalProcess(child.pid, "KILL");
});

test("the id of the computer's start stays the same, and is one line", async () => {
  const id = await readBootId();
  expect(id).toMatch(/^[0-9A-Fa-f-]{36}$/);
  expect(await readBootId()).toBe(id);
});
