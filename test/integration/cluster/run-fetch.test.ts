/** `run --fetch` gets files from a node, whatever the command's exit code and whatever the node sends. */
import { describe, expect, test } from "bun:test";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fetchFile } from "../../../src/cluster/fetch.ts";
import { failureOf } from "../../support/failure-of.ts";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import {
  opensshLack,
  type OpensshServer,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { connectTo, signal } from "../../support/ssh-options.ts";
import { rawArchive, rawEntry } from "../../support/tar-blocks.ts";
import { runOnNode } from "./run-on-node.ts";

interface Node extends AsyncDisposable {
  readonly server: OpensshServer;
  /** Root's home folder on the node. */
  readonly home: string;
  /** The folder for fetched files. */
  readonly here: string;
  readonly run: (
    words: string,
    fetches: readonly [remote: string, local: string][],
  ) => Promise<Outcome>;
}

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A node on which `programs`, which are shell scripts, replace those of the same name. */
async function startNode(programs: Readonly<Record<string, string>>): Promise<Node> {
  const scratch = await scratchFolder();
  const [home, here, bin, directory] = ["home", "here", "bin", "state"].map((name) =>
    join(scratch.path, name),
  ) as [string, string, string, string];
  for (const path of [home, here, bin]) await mkdir(path);
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  }
  const server = await startOpensshServer([
    `SetEnv HOME=${home} PATH=${bin}:/usr/sbin:/usr/bin:/sbin:/bin`,
  ]);
  await makeFolderFor(server, directory);
  return {
    server,
    home,
    here,
    run: async (words, pairs) => {
      const fetches = pairs.map(([remote, local]) => ({ remote, local: join(here, local) }));
      return runOnNode({ directory, port: server.port, words: [words], fetches });
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Fetches over a new connection. */
async function fetchFrom(
  { server, here }: Node,
  remote: string,
  local = "target",
): Promise<unknown> {
  await using connection = await connectTo(server, {});
  return await fetchFile(
    { remote, local: join(here, local) },
    { connection, node: "master_0", settings: [] },
    signal,
  );
}

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  // Shows R118.
  test("gets files and folders after a failed command, and keeps its exit code", async () => {
    await using node = await startNode({});
    await writeFile(join(node.here, "log"), "an older one");
    const command =
      "mkdir -p out/sub; printf 'a\\0\\377b' >out/sub/bytes; ln -s sub/bytes out/link; ln -s out/sub last; exit 7";
    const { status, stdout } = await node.run(`echo hello; echo done >log; ${command}`, [
      ["log", "log"],
      [`${node.home}/out`, "new/folder"],
      ["last/bytes", "bytes"],
    ]);
    expect({ status, stdout }).toEqual({ status: 7, stdout: "hello\n" });
    expect((await readdir(node.here, { recursive: true })).toSorted()).toEqual(
      [
        "bytes",
        "log",
        "new",
        "new/folder",
        "new/folder/link",
        "new/folder/sub",
        "new/folder/sub/bytes",
      ].toSorted(),
    );
    expect(await readFile(join(node.here, "log"), "utf8")).toBe("done\n");
    expect(await readFile(join(node.here, "new/folder/link"))).toEqual(
      Buffer.from([0x61, 0, 0xff, 0x62]),
    );
  });

  test("after a failed command, a file that can't be fetched is a warning, and the rest is fetched", async () => {
    await using node = await startNode({});
    const { status, stderr } = await node.run("echo 1 >log; mkfifo pipe; exit 7", [
      ["no-such", "a"],
      ["pipe", "b"],
      ["log", "c"],
    ]);
    expect(status).toBe(7);
    expect(stderr).toMatch(/^Warning: .*no-such from master_0: .*not exist/m);
    expect(stderr).toMatch(/^Warning: .*pipe from master_0: .*neither/m);
    expect(await readdir(node.here)).toEqual(["c"]);
  });

  test("after a successful command, a file that can't be fetched is an error", async () => {
    await using node = await startNode({});
    const { status, stderr } = await node.run("echo 1 >log", [
      ["no-such", "a"],
      ["log", "c"],
    ]);
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/no-such from master_0: .*not exist/);
    expect(await readdir(node.here)).toEqual(["c"]);
  });

  test("gets a file that grows while it is read, and one of many megabytes", async () => {
    await using node = await startNode({
      tar: '/bin/tar "$@"; echo "tar: ./log: file changed as we read it" >&2; exit 1',
    });
    await writeFile(join(node.home, ".bashrc"), "echo noise of a start-up file\n");
    await writeFile(join(node.home, "large"), Buffer.alloc(20_000_000, "0123456789abcde"));
    expect(await fetchFrom(node, `${node.home}/large`)).toEqual({
      files: 1,
      bytes: 20_000_000,
      shrunk: [],
    });
    expect(
      Bun.spawnSync(["cmp", join(node.home, "large"), join(node.here, "target")]).exitCode,
    ).toBe(0);
  });

  test("a file that shrinks while it is read is named", async () => {
    // Between tar's look at the size and its reading.
    await using node = await startNode({
      tar: 'echo "tar: ./a log: File shrank by 1234 bytes; padding with zeros" >&2; /bin/tar "$@"; exit 1',
    });
    await mkdir(join(node.home, "logs"));
    await writeFile(join(node.home, "logs", "a log"), "short");
    expect(await fetchFrom(node, `${node.home}/logs`)).toMatchObject({ shrunk: ["a log"] });
    const { status, stderr } = await node.run("true", [["logs", "there"]]);
    expect(status).toBe(0);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("a log: became shorter while it was fetched");
  });

  const folder = rawEntry({ name: "./", type: "5", mode: 0o755 });
  test.each([
    [
      "leads out by its name",
      rawArchive({ name: "./", type: "5" }, { name: "./../../escaped" }),
      "plain name",
    ],
    [
      "leads out by a link",
      rawArchive({ name: "./", type: "5" }, { name: "./a", type: "2", linkTarget: "/etc" }),
      "link",
    ],
    [
      "is a device",
      rawArchive({ name: "./", type: "5" }, { name: "./a", type: "3" }),
      "neither a file",
    ],
    ["ends early", folder, "incomplete"],
    ["is no archive", Buffer.alloc(5000, "x"), "damaged"],
    ["is nothing", Buffer.alloc(0), "incomplete"],
  ])("an archive from a hostile node that %s leaves nothing", async (_name, archive, reason) => {
    await using node = await startNode({ tar: 'cat "$HOME/archive"' });
    await writeFile(join(node.home, "archive"), archive);
    const failure = await failureOf(fetchFrom(node, node.home));
    expect(failure).toMatchObject({ id: "transfer-failed", facts: { remote: node.home } });
    expect(failure.message).toContain(reason);
    expect(await readdir(node.here)).toEqual([]);
  });

  test("a hostile archive that never ends is stopped, also on the node, and leaves nothing", async () => {
    await using node = await startNode({ tar: 'cat "$HOME/archive"; exec sleep 617' });
    await writeFile(join(node.home, "archive"), rawArchive({ name: "./", type: "6" }));
    const failure = await failureOf(fetchFrom(node, node.home));
    expect(failure.message).toContain("neither a file, a folder nor a link");
    expect(Bun.spawnSync(["pgrep", "-fx", "sleep 617"]).exitCode).toBe(1);
    expect(await readdir(node.here)).toEqual([]);
  });

  test("an interruption leaves nothing, here or on the node", async () => {
    await using node = await startNode({ tar: 'touch "$HOME/begun"; exec sleep 618' });
    await using connection = await connectTo(node.server, {});
    const stop = new AbortController();
    const request = { remote: node.home, local: join(node.here, "target") };
    const fetching = failureOf(
      fetchFile(request, { connection, node: "master_0", settings: [] }, stop.signal),
    );
    while (!(await readdir(node.home)).includes("begun")) await Bun.sleep(20);
    stop.abort(new Error("enough"));
    expect((await fetching).message).toBe("enough");
    expect(await readdir(node.here)).toEqual([]);
    expect(Bun.spawnSync(["pgrep", "-fx", "sleep 618"]).exitCode).toBe(1);
  });

  test("a fetch that fails leaves no folders that it made, and all others", async () => {
    await using node = await startNode({});
    await mkdir(join(node.here, "mine"));
    const fetching = fetchFrom(node, "/nowhere/at/all", "mine/new/deep/target");
    expect((await failureOf(fetching)).message).toContain("it does not exist");
    expect(await readdir(node.here, { recursive: true })).toEqual(["mine"]);
  });

  test("a folder that has appeared at the target meanwhile is kept, and the error says why", async () => {
    await using node = await startNode({});
    await mkdir(join(node.here, "target"));
    await writeFile(join(node.here, "target", "mine"), "");
    const failure = await failureOf(fetchFrom(node, node.home));
    expect(failure).toMatchObject({ id: "transfer-failed" });
    expect(failure.message).toContain(`cannot write ${join(node.here, "target")}`);
    expect((await readdir(node.here, { recursive: true })).toSorted()).toEqual([
      "target",
      "target/mine",
    ]);
  });
});
