/** What root reads on a node where other processes can write; with the shells of nodes. */
import { expect, test } from "bun:test";
import { chmod, link, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { secretsScript } from "../../../src/platform/cluster-secrets.ts";
import { frameFunction, logsScript, parseFrames } from "../../../src/platform/node-logs.ts";
import { layouts } from "../../../src/platform/layouts/find-layout.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Reads a file as the logs do. */
function read(path: string, shell = "sh"): string {
  const script = `${frameFunction}\nread_file "$1" cat || echo refused`;
  return Bun.spawnSync([shell, "-c", script, "sh", path], { timeout: 20_000 }).stdout.toString();
}

/** A service's folder, to which the service can write, with a log; and a key of root's. */
async function makeFolders() {
  const scratch = await scratchFolder();
  const at = (...names: string[]): string => join(scratch.path, ...names);
  await mkdir(at("service", "inner"), { recursive: true });
  await chmod(at("service"), 0o777);
  await mkdir(at("own"), { mode: 0o700 });
  await writeFile(at("service", "inner", "log"), "a log\n");
  await writeFile(at("own", "log"), "a key\n");
  return { at, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

test.each(["sh", "bash"])("%s reads a regular file, and a missing one fails", async (shell) => {
  await using folders = await makeFolders();
  expect(read(folders.at("service", "inner", "log"), shell)).toBe("a log\n");
  expect(read(folders.at("service", "nothing"), shell)).toBe("refused\n");
});

test.each<[string, (at: (...names: string[]) => string) => Promise<void>]>([
  [
    "the file by a link",
    async (at) => replace(at, () => symlink(at("own", "log"), at("service", "inner", "log"))),
  ],
  [
    "the file by a relative link",
    async (at) => replace(at, () => symlink("../../own/log", at("service", "inner", "log"))),
  ],
  [
    "the file by a hard link",
    async (at) => replace(at, () => link(at("own", "log"), at("service", "inner", "log"))),
  ],
  [
    "the file by a pipe",
    async (at) =>
      replace(at, async () => void (await Bun.$`mkfifo ${at("service", "inner", "log")}`)),
  ],
  [
    "the file by a device",
    async (at) => replace(at, () => symlink("/dev/zero", at("service", "inner", "log"))),
  ],
  [
    "its folder by a link",
    async (at) => {
      await rename(at("service", "inner"), at("service", "moved"));
      await symlink(at("own"), at("service", "inner"));
    },
  ],
])("nothing is read if a service has replaced %s", async (_, change) => {
  await using folders = await makeFolders();
  await change(folders.at);
  expect(read(folders.at("service", "inner", "log"))).toBe("refused\n");
});

async function replace(
  at: (...names: string[]) => string,
  make: () => Promise<void>,
): Promise<void> {
  await rm(at("service", "inner", "log"));
  await make();
}

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)(
  "links that only root can change are followed, up to the first folder of somebody else",
  async () => {
    await using folders = await makeFolders();
    // A folder whose parents are all root's; the temporary folder is everybody's.
    const root = `/run/cluster-e2e-test-${process.pid}`;
    await mkdir(join(root, "real"), { recursive: true, mode: 0o755 });
    try {
      await writeFile(join(root, "real", "log"), "of root\n");
      await symlink("real", join(root, "link"));
      await symlink(`${root}/link/../link/log`, join(root, "log"));
      await symlink(folders.at("service"), join(root, "service"));
      await link(join(root, "real", "log"), join(root, "real", "second"));
      for (const name of ["log", "link/log", "real/second"])
        expect(read(join(root, name))).toBe("of root\n");
      expect(read(join(root, "service/inner/log"))).toBe("a log\n");
      await symlink(folders.at("own", "log"), folders.at("service", "stolen"));
      expect(read(join(root, "service/stolen"))).toBe("refused\n");
      await symlink("loop", join(root, "loop"));
      expect(read(join(root, "loop"))).toBe("refused\n");
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  },
);

const lists = layouts.flatMap(({ factFiles }) => factFiles ?? []);

test("the logs and the secrets of a platform leave out what a service has put there by a link", async () => {
  await using folders = await makeFolders();
  const { at } = folders;
  await symlink(at("own", "log"), at("service", "stolen"));
  await writeFile(at("files"), `${at("service", "stolen")}\n${at("service", "inner", "log")}\n`);
  const { logFiles = "", secretFiles = "" } = lists[0] ?? {};
  const run = (script: string, list: string): string =>
    Bun.spawnSync(["sh", "-c", script.replaceAll(list, at("files"))], {
      timeout: 100_000,
    }).stdout.toString();
  const logs = parseFrames(run(logsScript({}), logFiles), ["platform-files.txt"]).get(
    "platform-files.txt",
  );
  expect(logs).toBe(
    `==> ${at("service", "stolen")} <==\n(not read: links lead to it that others than root can change)\n==> ${at("service", "inner", "log")} <==\na log\n\n`,
  );
  const secrets = parseFrames(run(secretsScript, secretFiles), ["listed-0", "listed-1"]);
  expect([...secrets]).toEqual([["listed-1", "a log\n"]]);
});

test.each(["sh", "bash"])("%s names each secret that can't be masked", async (shell) => {
  await using folders = await makeFolders();
  const { at } = folders;
  await symlink(at("own", "log"), at("service", "stolen"));
  await symlink(at("own", "nothing"), at("service", "dangling"));
  await Bun.$`mkfifo ${at("service", "pipe")}`;
  await writeFile(at("service", "full"), "x".repeat(64_000));
  await writeFile(at("service", "long"), "x".repeat(64_001));
  const names = ["stolen", "dangling", "missing", "pipe", "full", "long", "inner", "inner/log/x"];
  const lines = names.map((name) => `${at("service", name)}\n`).join("");
  await writeFile(at("files"), `${lines}${at("service", "inner", "log")}\n`);
  const script = secretsScript.replaceAll(lists[0]!.secretFiles, at("files"));
  const { stdout } = Bun.spawnSync([shell, "-c", script], { timeout: 100_000 });
  const found = parseFrames(stdout.toString(), ["listed-4", "listed-5", "listed-8", "unmasked"]);
  expect(Object.fromEntries(found)).toEqual({
    "listed-4": "x".repeat(64_000),
    "listed-8": "a log\n",
    unmasked: ["unreadable stolen", "unreadable pipe", "long long", "unreadable inner"]
      .map((line) => `${line.replace(" ", ` ${at("service")}/`)}\n`)
      .join(""),
  });
});
