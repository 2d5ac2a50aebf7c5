/** Login shells and their replacements on a real sshd: noise around answers is ignored, and a command that doesn't run is an error. */
import { describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFirstContact } from "../../../src/ssh/first-contact.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { passedMs, systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import {
  opensshLack,
  startOpensshServer,
  type OpensshServer,
} from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { connectTo, destinationOf, signal, wireKey } from "../../support/ssh-options.ts";

/** A start-up file of the login shell that prints this much. */
const startUpFiles = {
  "one line": "echo welcome",
  "no line break": "printf '\\033[H\\033[2J'; printf '\\033[0m' >&2",
  "both streams": "echo welcome; echo 'stty: not a tty' >&2",
  "a megabyte": "head -c 1000000 /dev/zero | tr '\\0' x",
};

describe.skipIf(opensshLack !== undefined)(
  `login shells on a real sshd (${opensshLack ?? "here"})`,
  () => {
    const startNoisy = async (startUp: string, home: string): Promise<OpensshServer> => {
      await writeFile(join(home, "start-up"), startUp);
      return await startOpensshServer([
        `ForceCommand . ${home}/start-up; eval "$SSH_ORIGINAL_COMMAND"`,
      ]);
    };

    // Shows R130.
    test.each(Object.entries(startUpFiles))(
      "%s from a start-up file stands in no answer",
      async (_name, startUp) => {
        await using home = await scratchFolder();
        await using server = await startNoisy(startUp, home.path);
        await using connection = await connectTo(server, {});
        const chunks: string[] = [];
        const argv = ["sh", "-c", "echo out; echo err >&2; exit 3"];
        const onOutput = (stream: string, chunk: string): void =>
          void chunks.push(`${stream} ${chunk}`);
        expect(await connection.run({ argv, onOutput }, signal)).toEqual({
          status: 3,
          stdout: "out\n",
          stderr: "err\n",
        });
        expect(chunks.toSorted()).toEqual(["stderr err\n", "stdout out\n"]);
        const path = join(home.path, "uploaded");
        await connection.upload({ text: "whole" }, { path, mode: 0o600 }, signal);
        expect(await readFile(path, "utf8")).toBe("whole");
      },
    );

    const meet = (server: OpensshServer, knownHostsFile: string) =>
      makeFirstContact(
        {
          destination: destinationOf(server),
          privateKey: server.loginKey.privateKey,
          firstHostKey: server.firstHostKey.publicKey,
          knownHosts: createKnownHosts(knownHostsFile),
          hostKeyLocation: { folder: server.hostKeyFolder, reload: server.reload },
          untilSwitched: false,
          clock: systemClock,
          deadlineMs: passedMs(systemClock) + 250_000,
          everyMs: 100,
          progress: silentProgress,
        },
        signal,
      );

    test.each(Object.entries(startUpFiles))(
      "%s does not hinder the first login",
      async (_name, startUp) => {
        await using home = await scratchFolder();
        await using server = await startNoisy(startUp, home.path);
        await using connection = await meet(server, join(home.path, "known_hosts"));
        expect(connection.isOpen).toBe(true);
        const key = wireKey(
          await readFile(join(server.hostKeyFolder, "ssh_host_ed25519_key.pub"), "utf8"),
        );
        expect(
          await createKnownHosts(join(home.path, "known_hosts")).expected("127.0.0.1", server.port),
        ).toEqual(key);
      },
    );

    test("a command after a noisy start-up file is killed at its time limit", async () => {
      await using home = await scratchFolder();
      await using server = await startNoisy("printf noise >&2", home.path);
      await using connection = await connectTo(server, {});
      const error = await failureOf(
        connection.run({ argv: ["sleep", "65"], limitMs: 300 }, signal),
      );
      expect(error.id).toBe("deadline-passed");
      expect((await connection.run({ argv: ["pgrep", "-fx", "sleep 65"] }, signal)).status).toBe(1);
    });

    // Shows R130.
    test.each([
      [
        "runs another command",
        "ForceCommand echo go away; exit 0",
        "the program that sshd runs",
        '"go away" and exited with status 0',
      ],
      [
        "runs nothing",
        "ForceCommand exit 0",
        "the program that sshd runs",
        "nothing and exited with status 0",
      ],
      [
        // csh would treat both as file names. It is replaced by a shell that prints no process id.
        "is no POSIX shell",
        `ForceCommand case $SSH_ORIGINAL_COMMAND in "echo e2e-login"*) echo e2e-login-shell=/bin/csh;; *) echo Illegal variable name. >&2; exit 0;; esac`,
        "the login shell /bin/csh",
        '"Illegal variable name." and exited with status 0',
      ],
    ])(
      "a node that %s: run, upload and the first login fail with this reason",
      async (_name, setting, subject, said) => {
        await using home = await scratchFolder();
        await using server = await startOpensshServer([setting]);
        await using connection = await connectTo(server, {});
        const expected = {
          id: "remote-command-failed",
          transient: false,
          message: `master_0 (127.0.0.1 port ${server.port}) did not run the command: ${subject} printed ${said}.`,
          hint: expect.stringContaining("must be a POSIX shell"),
        };
        expect(await failureOf(connection.run({ argv: ["true"] }, signal))).toMatchObject(expected);
        const target = { path: join(home.path, "uploaded"), mode: 0o600 };
        expect(await failureOf(connection.upload({ text: "x" }, target, signal))).toMatchObject(
          expected,
        );
        expect(await failureOf(meet(server, join(home.path, "known_hosts")))).toMatchObject(
          expected,
        );
      },
    );

    const fish = Bun.which("fish");
    test.skipIf(fish === null)(
      `the error names fish as the login shell (${fish ?? "no fish here"})`,
      async () => {
        await using server = await startOpensshServer([
          `ForceCommand exec fish --no-config -c "$SSH_ORIGINAL_COMMAND"`,
          `SetEnv HOME=/ SHELL=${fish}`,
        ]);
        await using connection = await connectTo(server, {});
        const error = await failureOf(connection.run({ argv: ["true"] }, signal));
        expect(error).toMatchObject({ id: "remote-command-failed", facts: { loginShell: fish } });
        expect(error.message).toContain(
          `did not run the command: the login shell ${fish} printed `,
        );
      },
    );
  },
);
