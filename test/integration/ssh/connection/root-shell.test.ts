import { existsSync } from "node:fs";
import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { connectTo, signal } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

const asRoot = (script: string, more: Partial<RemoteCommand> = {}): RemoteCommand => ({
  argv: ["sh", "-c", script],
  sudo: true,
  ...more,
});

/** Prints the process that runs the shell: the first of those above that have its name, because its subshells have that too. */
const printShell = `
p=$$
while [ "$p" -gt 1 ]; do
  p=$(sed 's/.*) //' /proc/$p/stat | cut -d ' ' -f 2)
  ! grep -qsxz e2e-root-shell /proc/$p/cmdline || shell=$p
done
echo $shell`;

const shellId = async (connection: Connection): Promise<number> =>
  Number((await connection.run(asRoot(printShell), signal)).stdout);

/** Only once a command has run on a login do others share a session. */
async function connect(server: OpensshServer): Promise<Connection> {
  const connection = await connectTo(server, {});
  await connection.run(asRoot(":"), signal);
  return connection;
}

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  const hold: { server?: OpensshServer } = {};
  const server = (): OpensshServer => hold.server!;
  beforeAll(async () => {
    hold.server = await startOpensshServer([]);
  });
  afterAll(() => server()[Symbol.asyncDispose]());

  const sessionsOf = async (of: OpensshServer): Promise<number> =>
    (await of.log()).split("\n").filter((line) => line.includes("Starting session")).length;

  test("after the first, commands that run as root one after the other take one session", async () => {
    await using own = await startOpensshServer([]);
    await using connection = await connect(own);
    for (let number = 0; number < 5; number += 1) {
      const { stdout } = await connection.run(asRoot(`echo ${number}`), signal);
      expect(stdout).toBe(`${number}\n`);
    }
    await using folder = await scratchFolder();
    const path = join(folder.path, "file");
    await connection.upload({ text: "text" }, { path, mode: 0o600, sudo: true }, signal);
    expect(await readFile(path, "utf8")).toBe("text");
    expect(await sessionsOf(own)).toBe(2);
  });

  test("at most two sessions stay open, however many commands run at the same time", async () => {
    await using own = await startOpensshServer([]);
    await using connection = await connect(own);
    const numbers = Array.from({ length: 12 }, (_, number) => `${number}\n`);
    const all = await Promise.all(
      numbers.map((number) => connection.run(asRoot("cat", { stdin: number }), signal)),
    );
    expect(all.map(({ stdout }) => stdout)).toEqual(numbers);
    const before = await sessionsOf(own);
    await Promise.all([1, 2].map(() => connection.run(asRoot("true"), signal)));
    expect(await sessionsOf(own)).toBe(before);
  });

  test.each([
    ["true", { status: 0, stdout: "", stderr: "" }],
    ["echo out; echo err >&2; exit 37", { status: 37, stdout: "out\n", stderr: "err\n" }],
    ["printf ü; printf %s 1 >&2", { status: 0, stdout: "ü", stderr: "1" }],
    ["kill -TERM $$", { status: 143, stdout: "", stderr: "" }],
    ["kill -KILL 0", { status: 137, stdout: "", stderr: "" }],
    ["sleep 0.3; echo late & exit 2", { status: 2, stdout: "late\n", stderr: "" }],
    ["no-such-program 2>/dev/null", { status: 127, stdout: "", stderr: "" }],
  ])("returns the status and output of %j, and then of the next", async (script, result) => {
    await using connection = await connect(server());
    const shell = await shellId(connection);
    expect(await connection.run(asRoot(script), signal)).toEqual(result);
    expect(await shellId(connection)).toBe(shell);
  });

  test("long output of both streams arrives whole, in front of a slow reader too", async () => {
    await using connection = await connect(server());
    const seen: string[] = [];
    const onOutput = async (_stream: string, chunk: string): Promise<void> => {
      seen.push(chunk);
      await Bun.sleep(1);
    };
    const script = "seq 1 200000; seq 1 200000 >&2";
    const { stdout, stderr } = await connection.run(asRoot(script, { onOutput }), signal);
    expect(stdout).toEndWith("\n199999\n200000\n");
    expect(stderr).toBe(stdout);
    expect(seen.join("")).toHaveLength(2 * stdout.length);
    expect((await connection.run(asRoot("echo next"), signal)).stdout).toBe("next\n");
  });

  test("a command that doesn't read its stdin leaves none of it to the next", async () => {
    await using connection = await connect(server());
    const stdin = "exit 1\n".repeat(8_000);
    expect((await connection.run(asRoot("exit 4", { stdin }), signal)).status).toBe(4);
    expect((await connection.run(asRoot("wc -c", { stdin }), signal)).stdout.trim()).toBe("56000");
    expect((await connection.run(asRoot("wc -c"), signal)).stdout.trim()).toBe("0");
  });

  test("variables, the folder and the mask of a command do not reach the next", async () => {
    await using connection = await connect(server());
    const look = asRoot("pwd; umask; echo $GREETING");
    const before = await connection.run(look, signal);
    const environment = { GREETING: "hello" };
    await connection.run(asRoot("umask 0; cd /", { environment, cwd: "/usr" }), signal);
    expect(await connection.run(look, signal)).toEqual(before);
  });

  test("an aborted command is killed with all that it started, and the next gets another shell", async () => {
    await using connection = await connect(server());
    const shell = await shellId(connection);
    const abort = new AbortController();
    const seconds = `62.${process.pid}`;
    const script = `trap '' TERM; sleep ${seconds} & echo started; while :; do sleep ${seconds}; done`;
    const onOutput = (): void => abort.abort(new Error("changed my mind"));
    const failure = await failureOf(connection.run(asRoot(script, { onOutput }), abort.signal));
    expect(failure.message).toBe("changed my mind");
    const look = async (): Promise<string> =>
      (await connection.run({ argv: ["pgrep", "-f", `[s]leep ${seconds}`] }, signal)).stdout;
    await until("it has ended", async () => (await look()) === "");
    await until("its shell has ended", () => !existsSync(`/proc/${shell}`));
    expect(await shellId(connection)).not.toBe(shell);
  });

  test("a command whose shell ends is lost and may have run; it is not repeated", async () => {
    await using connection = await connect(server());
    const shell = await shellId(connection);
    await using folder = await scratchFolder();
    const path = join(folder.path, "runs");
    const script = `echo run >>${path}; kill -KILL ${shell}; sleep 0.1`;
    const error = await failureOf(connection.run(asRoot(script), signal));
    expect(error).toMatchObject({ id: "connection-failed", transient: true });
    expect(await readFile(path, "utf8")).toBe("run\n");
    expect(connection.isOpen).toBe(true);
    expect((await connection.run(asRoot("echo next"), signal)).stdout).toBe("next\n");
  });

  test("a shell that ends while it waits is replaced", async () => {
    await using connection = await connect(server());
    const shell = await shellId(connection);
    process.kill(shell, "SIGKILL");
    await until("it has ended", () => !existsSync(`/proc/${shell}`));
    const next = async (): Promise<number> => shellId(connection).catch(() => shell);
    await until("another shell runs", async () => (await next()) !== shell);
  });

  test("on a node that allows one session, a shell frees it for other commands", async () => {
    await using small = await startOpensshServer(["MaxSessions 1"]);
    await using connection = await connect(small);
    expect((await connection.run(asRoot("echo root"), signal)).stdout).toBe("root\n");
    expect((await connection.run({ argv: ["echo", "user"] }, signal)).stdout).toBe("user\n");
    expect((await connection.run(asRoot("echo root"), signal)).stdout).toBe("root\n");
  });

  test("on a node without setsid, each command has a session of its own", async () => {
    await using folder = await scratchFolder();
    await symlink("/bin/sh", join(folder.path, "sh"));
    await using own = await startOpensshServer([`SetEnv PATH=${folder.path}`]);
    await using connection = await connect(own);
    for (const word of ["first", "second"])
      expect((await connection.run(asRoot(`echo ${word}`), signal)).stdout).toBe(`${word}\n`);
    expect(await sessionsOf(own)).toBe(4);
  });

  test("a command's output shows neither marks nor the shell's text", async () => {
    await using connection = await connect(server());
    const { stdout, stderr } = await connection.run(
      asRoot("ps -o args= -p $$; echo; printf '\\036e2e- over 0\\n'"),
      signal,
    );
    expect(stdout).toEndWith("\n\u001ee2e- over 0\n");
    expect(stderr).toBe("");
  });
});
