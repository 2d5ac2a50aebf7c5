import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  fateOf,
  holdsFile,
  identifyThisProcess,
  isProcessAlive,
  readBootId,
  readProcessSpace,
  signalProcess,
} from "../../../../src/system/processes/process-identity.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** The identity of a process of this machine, from the kernel's own file. */
async function identityOf(pid: number) {
  const boot = (await Bun.file("/proc/sys/kernel/random/boot_id").text()).trim();
  return { ...(await readProcessSpace()), pid, startedAt: `${boot}:${(await fieldsOf(pid))[19]}` };
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
  const other = { host: "another", boot: "another" };
  expect(await isProcessAlive({ ...own, startedAt: "x", ...other })).toBe(true);
});

test("a process of another container or computer may be alive, and one of an earlier start of this computer is not", async () => {
  const here = { host: "h", computer: "c", boot: "b", namespace: "n" };
  expect(fateOf(here, here)).toBe("here");
  expect(fateOf({ ...here, namespace: "m" }, here)).toBe("elsewhere");
  expect(fateOf({ ...here, computer: "d", boot: "a" }, here)).toBe("elsewhere");
  expect(fateOf({ ...here, host: "i", boot: "a" }, here)).toBe("elsewhere");
  expect(fateOf({ ...here, boot: "a" }, here)).toBe("ended");
  const { computer: _, ...unknown } = here;
  expect(fateOf({ ...unknown, boot: "a" }, unknown)).toBe("elsewhere");
  // Such as a record of a program that doesn't know namespaces.
  expect(fateOf({ host: "h" }, here)).toBe("elsewhere");
  // Other systems than Linux.
  expect(fateOf({ host: "h" }, { host: "h" })).toBe("here");
});

test("a computer that gets another name stays the same until it restarts", async () => {
  const here = { host: "h", computer: "c", boot: "b", namespace: "n" };
  expect(fateOf({ ...here, host: "i" }, here)).toBe("here");
  expect(fateOf({ ...here, host: "i", namespace: "m" }, here)).toBe("elsewhere");
  // Such as two computers with another system that share a folder.
  expect(fateOf({ host: "i" }, { host: "h" })).toBe("elsewhere");
  expect(fateOf({ ...here, host: "i", boot: "" }, { ...here, boot: "" })).toBe("elsewhere");
  const own = (await identifyThisProcess())!;
  // Elsewhere, nobody could tell that it has ended.
  const isLinux = process.platform === "linux";
  expect(await isProcessAlive({ ...own, host: "another", startedAt: "x" })).toBe(!isLinux);
});

test("a process holds the files that it has locked, by any path, until it is ended", async () => {
  await using folder = await scratchFolder();
  const [file, other, link] = ["file", "other", "link"].map((name) => join(folder.path, name));
  await using child = Bun.spawn(
    ["sh", "-c", 'exec 8>"$1" 9>"$2"; flock 9; echo; read _', "sh", other!, file!],
    {
      stdin: "pipe",
      stdout: "pipe",
    },
  );
  await child.stdout.getReader().read();
  await symlink(file!, link!);
  for (const path of [file!, link!]) expect(await holdsFile(child.pid, path)).toBe(true);
  expect(await holdsFile(process.pid, file!)).toBe(false);
  // It is open, but not locked: any reader of a file has it open.
  expect(await holdsFile(child.pid, other!)).toBe(process.platform === "darwin");
  await signalProcess(child.pid, "TERM");
  await child.exited;
  expect(await holdsFile(child.pid, file!)).toBe(false);
  // Nobody is left to get it.
  await signalProcess(child.pid, "KILL");
});

test("the id of the computer's start stays the same, and is one line", async () => {
  const id = await readBootId();
  expect(id).toMatch(/^[0-9A-Fa-f-]{36}$/);
  expect(await readBootId()).toBe(id);
});
