/** Where `/proc` hides the processes of others, nothing shows whether one of them has ended. */
import { expect, test } from "bun:test";
import { chown, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readProcessSpace } from "../../../../src/system/processes/process-identity.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** A command in a place where `/proc` hides processes, for a root that may neither see nor signal those of others. The group 0 would see them. */
const hiding = (option: string): readonly string[] => [
  "unshare",
  "--mount",
  "sh",
  "-c",
  `mount -t proc -o hidepid=${option} proc /proc && exec setpriv --regid 1 --clear-groups --bounding-set -sys_ptrace,-kill -- "$@"`,
  "sh",
];
const canHide =
  process.getuid?.() === 0 &&
  ["unshare", "setpriv", "python3"].every((program) => Bun.which(program) !== null) &&
  Bun.spawnSync([...hiding("2"), "true"]).exitCode === 0;
const other = 65_534;

const locking = `
import fcntl, os, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
os.setresuid(${other}, ${other}, ${other})
print("locked", flush=True)
sys.stdin.read()
`;

/** Another user's process, which has locked a file. */
async function startOther(file: string) {
  const child = Bun.spawn(["python3", "-c", locking, file], { stdin: "pipe", stdout: "pipe" });
  await child.stdout.getReader().read();
  return child;
}

async function identityOf(pid: number) {
  const boot = (await Bun.file("/proc/sys/kernel/random/boot_id").text()).trim();
  const fields = (await Bun.file(`/proc/${pid}/stat`).text()).replace(/^.*\) /s, "").split(" ");
  return { ...(await readProcessSpace()), pid, startedAt: `${boot}:${fields[19]}` };
}

async function look(option: string, words: readonly unknown[]): Promise<unknown> {
  const program = join(import.meta.dir, "hidden-processes-program.ts");
  const asked = words.map((word) => JSON.stringify(word));
  const child = Bun.spawn([...hiding(option), process.execPath, program, ...asked], {
    stdout: "pipe",
    stderr: "inherit",
  });
  return JSON.parse(await new Response(child.stdout).text());
}

test.skipIf(!canHide).each(["1", "2"])(
  "with hidepid=%s, another user's process counts as alive, holds what it has locked, and may hold anything else",
  async (option) => {
    await using folder = await scratchFolder();
    const at = (name: string): string => join(folder.path, name);
    for (const name of ["locked", "unlocked", "own"]) await writeFile(at(name), "");
    for (const name of ["locked", "unlocked"]) await chown(at(name), other, other);
    await using child = await startOther(at("locked"));
    const identity = await identityOf(child.pid);
    const files = [at("locked"), at("unlocked"), at("missing")];
    const lock = at("lock");
    await symlink(await lockOf(identity), lock);
    expect(await look(option, [identity, files, lock])).toEqual({
      isAlive: true,
      holds: [true, "hidden", false],
      lock: ` That process is another user's. If it has ended, remove ${lock}.`,
    });
    await child.stdin.end();
    await child.exited;
    expect(await look(option, [identity, files, lock])).toEqual({
      isAlive: false,
      holds: [false, false, false],
      lock: "taken",
    });
  },
);

test.skipIf(!canHide)(
  "where it is visible, a process of another user than the file's holds nothing",
  async () => {
    await using folder = await scratchFolder();
    const [locked, own] = [join(folder.path, "locked"), join(folder.path, "own")];
    for (const file of [locked, own]) await writeFile(file, "");
    await using child = await startOther(locked);
    const identity = await identityOf(child.pid);
    const found = await look("0", [identity, [locked, own], join(folder.path, "lock")]);
    expect(found).toEqual({ isAlive: true, holds: [true, false], lock: "taken" });
  },
);

/** The text of a lock that this process holds. */
async function lockOf(identity: Awaited<ReturnType<typeof identityOf>>): Promise<string> {
  const digest = (text: string): string =>
    new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 8);
  const { host, computer, boot, namespace, pid, startedAt } = identity;
  const space = [digest(`${host}:${computer ?? boot ?? ""}`), digest(boot ?? "")];
  return [...space, digest(namespace ?? ""), String(pid), digest(startedAt), "0123abcd"].join(":");
}
