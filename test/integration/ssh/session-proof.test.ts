/** A session on a real sshd counts as a command's only if the node proves that the command has begun, and how it has ended. */
import { closeSync, openSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import { createConnectionPool } from "../../../src/ssh/connection/connection-pool.ts";
import { createKnownHosts, renderSshConfig } from "../../../src/ssh/openssh-files.ts";
import { startSession } from "../../../src/ssh/session/session.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { destinationOf, signal, wireKey } from "../../support/ssh-options.ts";

interface Outcome {
  readonly status: number | ClusterError;
  readonly stdout: string;
  readonly stderr: string;
}

interface Given {
  /** What sshd runs instead of the login shell. */
  readonly force: string;
  readonly words: readonly string[];
  readonly terminal?: boolean;
}

/** Runs a command like `run`, with a terminal if `terminal` is set. */
async function run({ force, words, terminal = false }: Given): Promise<Outcome> {
  await using scratch = await scratchFolder();
  const path = (name: string): string => join(scratch.path, name);
  await using server = await startOpensshServer([`ForceCommand ${force}`]);
  const knownHosts = createKnownHosts(path("known hosts"));
  await knownHosts.pin("127.0.0.1", server.port, wireKey(server.firstHostKey.publicKey));
  await writeFile(path("the key"), server.loginKey.privateKey, { mode: 0o600 });
  const identity = { identityFile: path("the key"), knownHostsFile: knownHosts.path };
  await writeFile(path("ssh config"), renderSshConfig([destinationOf(server)], identity));
  if (terminal) {
    const program = join(import.meta.dir, "terminal-program.ts");
    const request = JSON.stringify({ folder: scratch.path, port: server.port, words, terminal });
    const child = Bun.spawn(
      ["script", "-qec", `exec bun ${program} '${request}'`, path("transcript")],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    return {
      stdout: await new Response(child.stdout).text(),
      status: await child.exited,
      stderr: "",
    };
  }
  await using pool = createConnectionPool({
    privateKeyFile: path("the key"),
    knownHosts,
    clock: systemClock,
    progress: silentProgress,
  });
  const stdin = openSync("/dev/null", "r");
  const [stdout, stderr] = [openSync(path("stdout"), "w"), openSync(path("stderr"), "w")];
  const session = startSession(
    {
      sshConfigFile: path("ssh config"),
      host: "master_0",
      loginUser: "root",
      sudo: true,
      script: {
        settings: [
          {
            whenExists: undefined,
            environmentFile: undefined,
            variables: {},
            workingDirectory: undefined,
          },
        ],
        words,
        missingFolderHint: "",
      },
      terminal: false,
      stdio: [stdin, stdout, stderr],
      environment: process.env,
      master: undefined,
      connect: (inner) => pool.connect(destinationOf(server), inner),
    },
    signal,
  );
  const { report } = await session.end;
  const status = await report(signal).catch((error: unknown) => error as ClusterError);
  for (const descriptor of [stdin, stdout, stderr]) closeSync(descriptor);
  const read = (name: string): string => readFileSync(path(name), "utf8");
  return { status, stdout: read("stdout"), stderr: read("stderr") };
}

const asUsual = 'eval "$SSH_ORIGINAL_COMMAND"';
const bash = 'exec bash --rcfile /dev/null -c "$SSH_ORIGINAL_COMMAND"';

describe.skipIf(opensshLack !== undefined)(`a session's proof (${opensshLack ?? "here"})`, () => {
  // Shows R130.
  test.each([
    ["a start file that ends the shell", "exit 0; "],
    ["a start file that ends it with a message", "echo go away; exit 0; "],
    ["a start file that becomes another program", "exec true; "],
    ["a shell that is /bin/true", "/bin/true"],
    ["a shell that is /bin/false", "/bin/false"],
    ["a shell that allows no login", "/usr/sbin/nologin"],
    ["a command that replaces all others", 'echo "$SSH_ORIGINAL_COMMAND"'],
    ["a program that returns what it reads", "cat"],
    ["a shell that shows what it would run", 'bash -nv -c "$SSH_ORIGINAL_COMMAND"'],
    ["a shell that a signal ends", "kill -TERM $$"],
  ])("%s: the command has not begun, and that is an error", async (_, force) => {
    const { status, stdout } = await run({
      force: force.endsWith("; ") ? force + asUsual : force,
      words: ["echo ran"],
    });
    expect(status).toBeInstanceOf(ClusterError);
    expect(status).toMatchObject({
      id: "remote-command-failed",
      message: expect.stringContaining("did not run the command"),
    });
    expect(stdout).toBe("");
  });

  // Shows R130.
  test.each([
    ["prints on both streams", `echo welcome; echo careful >&2; ${asUsual}`],
    ["prints no line break", `printf '\\033[2J'; printf '\\033[0m' >&2; ${asUsual}`],
    ["prints a megabyte", `head -c 1000000 /dev/zero | tr '\\0' x; ${asUsual}`],
    ["shows what it runs", `set -xv; ${asUsual}`],
    ["is bash, and shows what it runs", `exec bash -xv -c "$SSH_ORIGINAL_COMMAND"`],
    ["hides the command's status", `${asUsual}; exit 0`],
    ["prints something at the end", `bash -c "$SSH_ORIGINAL_COMMAND"; echo bye; echo bye >&2`],
  ])(
    "a login shell that %s: the command's status and its own output arrive",
    async (name, force) => {
      const { status, stdout, stderr } = await run({
        force,
        words: ["echo out; echo err >&2; exit 3"],
      });
      const late = name.endsWith("at the end") ? "bye\n" : "";
      expect({ status, stdout, stderr }).toEqual({
        status: 3,
        stdout: `out\n${late}`,
        stderr: `err\n${late}`,
      });
    },
  );

  test.each(["zsh", "dash", "bash"].filter((name) => Bun.which(name) !== null))(
    "%s as the login shell runs the command",
    async (name) => {
      const outcome = await run({
        force: `exec ${name} -c "$SSH_ORIGINAL_COMMAND"`,
        words: ["echo out; exit 3"],
      });
      expect(outcome).toEqual({ status: 3, stdout: "out\n", stderr: "" });
    },
  );

  test.skipIf(Bun.which("fish") === null)(
    "fish as the login shell runs nothing, and that is an error",
    async () => {
      const { status } = await run({
        force: 'exec fish -c "$SSH_ORIGINAL_COMMAND"',
        words: ["echo out >ran"],
      });
      expect(status).toMatchObject({ id: "remote-command-failed" });
    },
  );

  test.each([
    { words: ["exit", "4"] },
    { words: ["exec", "sh", "-c", "exit 4"] },
    { words: ["sh", "-c", "exit 4"] },
  ])("$words are the command, not our shell's", async ({ words }) => {
    expect(await run({ force: bash, words })).toEqual({ status: 4, stdout: "", stderr: "" });
  });

  // Shows R130.
  test("a session that ends before its command is an error", async () => {
    const kill =
      'kill -KILL "$(ps -o ppid= -p "$(ps -o ppid= -p "$PPID")")" "$(ps -o ppid= -p "$PPID")" "$PPID"';
    const { status } = await run({
      force: `bash -c "$SSH_ORIGINAL_COMMAND"; exit 0`,
      words: [`${kill}; sleep 30`],
    });
    expect(status).toBeInstanceOf(ClusterError);
  });

  // Shows R77.
  test("on a terminal, a command that did not run is an error, and one that did has its status", async () => {
    const words = ["echo out; exit 3"];
    expect((await run({ force: `echo welcome; ${asUsual}`, words, terminal: true })).status).toBe(
      3,
    );
    expect((await run({ force: "exit 0", words, terminal: true })).status).not.toBe(0);
  });
});
