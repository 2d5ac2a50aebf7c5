import { existsSync, openSync, readFileSync } from "node:fs";
import { chmod, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import {
  type ConnectionPool,
  createConnectionPool,
} from "../../../src/ssh/connection/connection-pool.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import type { SessionSettings } from "../../../src/ssh/session/session-line.ts";
import { startSession } from "../../../src/ssh/session/session.ts";
import { ClusterError } from "../../../src/errors.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { argumentLists } from "../../support/argument-lists.ts";
import { failureOf } from "../../support/failure-of.ts";
import { freePort } from "../../support/free-port.ts";
import { opensshLack } from "../../support/openssh-server.ts";
import { destinationOf, signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";
import { type Setting, openSetting } from "../../support/session-setting.ts";

const bare: SessionSettings = {
  whenExists: undefined,
  environmentFile: undefined,
  variables: {},
  workingDirectory: undefined,
};

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Given {
  readonly settings?: readonly SessionSettings[];
  readonly stdin?: string | Uint8Array;
  readonly environment?: Record<string, string>;
  /** The port of the second route to the node. */
  readonly port?: number;
  readonly pool?: ConnectionPool;
  /** The text of ssh's configuration, instead of the fixture's. */
  readonly config?: string;
}

describe.skipIf(opensshLack !== undefined)(
  `sessions on a real sshd (${opensshLack ?? "here"})`,
  () => {
    /** Of the last session: whether the command may have begun, and its stderr. */
    const hold: { setting?: Setting; hasBegun?: boolean; stderr?: string } = {};
    const setting = (): Setting => hold.setting!;

    beforeAll(async () => {
      hold.setting = await openSetting();
    });
    afterAll(async () => setting()[Symbol.asyncDispose]());

    /** Runs a command like `run` without a terminal, with these settings. */
    async function run(
      words: readonly string[],
      given: Given,
      abort: AbortSignal,
    ): Promise<Outcome> {
      const { scratch, pool, server } = setting();
      const { port = server.port } = given;
      const folder = join(scratch.path, crypto.randomUUID());
      hold.stderr = join(folder, "stderr");
      await Bun.write(join(folder, "stdin"), given.stdin ?? "");
      const stdin = openSync(join(folder, "stdin"), "r");
      const [stdout, stderr] = [
        openSync(join(folder, "stdout"), "w"),
        openSync(join(folder, "stderr"), "w"),
      ];
      const sshConfigFile = join(folder, "it's 100% # an ssh config");
      await Bun.write(sshConfigFile, given.config ?? Bun.file(join(scratch.path, "ssh config")));
      const session = startSession(
        {
          sshConfigFile,
          host: "master_0",
          loginUser: "root",
          sudo: true,
          script: { settings: given.settings ?? [bare], words, missingFolderHint: "Make it." },
          terminal: false,
          stdio: [stdin, stdout, stderr],
          environment: { ...process.env, ...given.environment },
          master: undefined,
          connect: (inner) =>
            (given.pool ?? pool).connect(destinationOf({ user: "root", port }), inner),
        },
        abort,
      );
      const { hasBegun, report } = await session.end;
      hold.hasBegun = hasBegun;
      expect(
        await readdir(folder),
        "nothing but the configuration and the streams is left",
      ).toHaveLength(4);
      const status = await report(abort);
      const read = (name: string): string => readFileSync(join(folder, name), "utf8");
      return { status, stdout: read("stdout"), stderr: read("stderr") };
    }

    test.each([
      [["exit 0"], 0],
      [["exit 37"], 37],
      [["sh", "-c", "exit 255"], 255],
      [["no-such-program"], 127],
      [["/etc/passwd"], 126],
      [["sh", "-c", "kill -TERM $$"], 143],
      [["sh", "-c", "kill -KILL $$"], 137],
    ])("%j ends with %d", async (words, status) => {
      expect((await run(words, {}, signal)).status).toBe(status);
    });

    test("one word is a shell line; several words are literal arguments", async () => {
      expect(
        (await run(["echo 'a' \"b\" | wc -c; [[ x == x ]] && echo bash"], {}, signal)).stdout,
      ).toBe("4\nbash\n");
      const words = ["", "it's", "$HOME", "`id`", "a\nb", "\\", '"', "*", "größe", "-n", "if"];
      expect((await run(["printf", "%s|", ...words], {}, signal)).stdout).toBe(
        words.map((word) => `${word}|`).join(""),
      );
    });

    test("stdout and stderr stay separate, and stdin is passed on unchanged", async () => {
      expect(await run(["echo out; echo err >&2"], {}, signal)).toEqual({
        status: 0,
        stdout: "out\n",
        stderr: "err\n",
      });
      const bytes = crypto.getRandomValues(new Uint8Array(60_000));
      const stdin = Buffer.concat(Array.from({ length: 100 }, () => bytes));
      const digest = new Bun.CryptoHasher("sha256").update(stdin).digest("hex");
      expect((await run(["sha256sum"], { stdin }, signal)).stdout).toStartWith(digest);
    });

    test("a command may leave its stdin unread", async () => {
      const given = { stdin: new Uint8Array(8_000_000) };
      expect(await run(["true"], given, signal)).toEqual({ status: 0, stdout: "", stderr: "" });
    });

    test("settings are used in this order: file, variables, folder", async () => {
      const { scratch } = setting();
      const environmentFile = join(scratch.path, "environment.export");
      await writeFile(environmentFile, "export FROM_FILE=file\nexport BOTH=file\n");
      const settings: readonly SessionSettings[] = [
        { ...bare, whenExists: "/no/such/marker", variables: { FROM_FILE: "wrong" } },
        {
          whenExists: scratch.path,
          environmentFile,
          variables: { BOTH: "variable" },
          workingDirectory: "/usr/share",
        },
        { ...bare, variables: { FROM_FILE: "late" } },
      ];
      expect((await run(['echo "$FROM_FILE $BOTH $PWD"'], { settings }, signal)).stdout).toBe(
        "file variable /usr/share\n",
      );
    });

    test("without a folder, a command starts in the home folder; with a missing one, it doesn't start", async () => {
      expect((await run(['[ "$PWD" = "$HOME" ] && echo home'], {}, signal)).stdout).toBe("home\n");
      const settings = [{ ...bare, workingDirectory: "/no/such folder" }];
      const stderr = "The folder /no/such folder does not exist on this node. Make it.\n";
      expect(await run(["echo", "ran"], { settings }, signal)).toEqual({
        status: 255,
        stdout: "",
        stderr,
      });
    });

    // Shows R123.
    test("values of any kind, up to 100 kB, arrive unchanged, and are in no argument list", async () => {
      const secret = `s3cr3t-${crypto.randomUUID()}`;
      const variables = {
        SECRET: secret,
        NASTY: "'\"$x`id`\\\n\n",
        EMPTY: "",
        LARGE: `${secret}${"x".repeat(100_000)}`,
      };
      const seen: string[] = [];
      const scan = setInterval(
        () => seen.push(...argumentLists().filter((list) => list.includes(secret))),
        5,
      );
      const script = 'printf %s "$SECRET$NASTY$EMPTY|" ; printf %s "$LARGE" | wc -c; sleep 0.5';
      const { stdout } = await run([script], { settings: [{ ...bare, variables }] }, signal);
      clearInterval(scan);
      expect(stdout).toBe(`${secret}${variables.NASTY}|${variables.LARGE.length}\n`);
      expect(seen).toEqual([]);
    });

    test("an interrupt ends the command on the node", async () => {
      const isSleeper = (list: string): boolean => list.startsWith("sleep\x0071");
      const abort = new AbortController();
      const running = failureOf(run(["sleep 71 & sleep 71"], {}, abort.signal));
      await until("the sleepers run", () => argumentLists().some(isSleeper));
      abort.abort(new Error("interrupted"));
      expect((await running).message).toBe("interrupted");
      // They have been signalled, and need a moment to end.
      await until("the sleepers have ended", () => !argumentLists().some(isSleeper));
    });

    /** The stderr of the last session, which was rejected. */
    const lastStderr = (): Promise<string> => Bun.file(hold.stderr!).text();
    /** The fixture's configuration for ssh with a change. */
    const changed = async (change: (config: string) => string): Promise<string> =>
      change(await Bun.file(join(setting().scratch.path, "ssh config")).text());
    const notLoggedIn = {
      id: "connection-failed",
      facts: { node: "master_0" },
      message: expect.stringContaining("nothing was run"),
    };

    test("ssh itself rejects a wrong host key, with its message; ours follows", async () => {
      const { scratch, server } = setting();
      await writeFile(join(scratch.path, "no hosts"), "");
      const config = await changed((text) => text.replace("known hosts", "no hosts"));
      expect(await failureOf(run(["true"], { config }, signal))).toMatchObject(notLoggedIn);
      expect(await lastStderr()).toContain("Host key verification failed.");
      expect(await server.log()).not.toBe("");
    });

    test.each([
      [
        "host-key-changed",
        "known hosts",
        (key: string) => `[127.0.0.1]:${setting().server.port} ${key}\n`,
      ],
      ["key-missing", "the key", () => "garbage\n"],
    ])("only %s is reported, without ssh's own messages", async (id, name, textWith) => {
      const path = (file: string): string =>
        join(setting().scratch.path, file === name ? `bad ${file}` : file);
      await writeFile(path(name), textWith(generateKeyPair("other").publicKey), { mode: 0o600 });
      await using pool = createConnectionPool({
        privateKeyFile: path("the key"),
        knownHosts: createKnownHosts(path("known hosts")),
        clock: systemClock,
        progress: silentProgress,
      });
      const config = await changed((text) => text.replace(name, `bad ${name}`));
      expect(await failureOf(run(["true"], { config, pool }, signal))).toMatchObject({ id });
      expect(await lastStderr()).toBe("");
    });

    test("if the cluster was destroyed meanwhile, only that is reported", async () => {
      const connect = async () =>
        Promise.reject(new ClusterError("cluster-not-found", "It was destroyed."));
      const config = await changed((text) => text.replace("the key", "no key"));
      const failing = run(["true"], { config, pool: { ...setting().pool, connect } }, signal);
      expect(await failureOf(failing)).toMatchObject({ id: "cluster-not-found" });
      expect(await lastStderr()).toBe("");
    });

    // Shows R92.
    test("if nothing listens, or the login is rejected, nothing was run", async () => {
      const closed = await freePort();
      const nobody = await changed((text) => text.replace(/Port \d+/, `Port ${closed}`));
      expect(await failureOf(run(["true"], { config: nobody }, signal))).toMatchObject(notLoggedIn);
      expect(await lastStderr()).toContain("Connection refused");
      const foreign = await changed((text) => text.replace(/User .+/, "User nobody"));
      expect(await failureOf(run(["true"], { config: foreign }, signal))).toMatchObject(
        notLoggedIn,
      );
      expect(await lastStderr()).toContain("Permission denied");
      expect(hold.hasBegun).toBe(false);
    });

    // Shows R92.
    test("a command's own exit code 255 is kept without a message, whatever the user's shell", async () => {
      const given = { environment: { SHELL: "/bin/false" } };
      const outcome = { status: 255, stdout: "", stderr: "said\n" };
      expect(await run(["echo said >&2; exit 255"], given, signal)).toEqual(outcome);
      expect(hold.hasBegun).toBe(true);
    });

    // Shows R6.
    test("without ssh on this computer nothing starts", async () => {
      const error = await failureOf(run(["true"], { environment: { PATH: "/no/such" } }, signal));
      expect(error.id).toBe("machine-not-set-up");
    });

    /** The PATH with another ssh before this machine's. */
    async function pathWithSsh(text: string): Promise<string> {
      const bin = join(setting().scratch.path, crypto.randomUUID());
      await Bun.write(join(bin, "ssh"), text);
      await chmod(join(bin, "ssh"), 0o755);
      return `${bin}:${process.env["PATH"]}`;
    }

    test("ssh inherits neither Bun's variables nor credentials", async () => {
      const seen = join(setting().scratch.path, "seen");
      const look = `env | grep -c '^BUN_\\|^AWS_\\|^CLOUD_' >${seen}\nenv | grep '^LC_TIME' >>${seen}`;
      const PATH = await pathWithSsh(`#!/bin/sh\n${look}\nexec ${Bun.which("ssh")} "$@"\n`);
      const variables = {
        BUN_OPTIONS: "--x",
        BUN_BE_BUN: "1",
        BUN_INSPECT: "ws://127.0.0.1:1/x",
        AWS_SECRET_ACCESS_KEY: "x",
        CLOUD_ACCESS_KEY_ID: "y",
      };
      const environment = { PATH, ...variables, LC_TIME: "C" };
      expect((await run(["true"], { environment }, signal)).status).toBe(0);
      expect(await Bun.file(seen).text()).toBe("0\nLC_TIME=C\n");
    });

    test("a killed ssh is an error, not a silent 255", async () => {
      const environment = { PATH: await pathWithSsh("#!/bin/sh\nkill -KILL $$\n") };
      const killed = { id: "connection-failed", message: expect.stringContaining("SIGKILL") };
      expect(await failureOf(run(["true"], { environment }, signal))).toMatchObject(killed);
      expect(hold.hasBegun).toBe(false);
    });

    test("an interrupt before the login ends ssh, and nothing was run", async () => {
      const isWaiting = (list: string): boolean => list.startsWith("sleep\x0072");
      const environment = { PATH: await pathWithSsh("#!/bin/sh\nexec sleep 72\n") };
      const abort = new AbortController();
      const running = failureOf(run(["true"], { environment }, abort.signal));
      await until("ssh connects", () => argumentLists().some(isWaiting));
      abort.abort(new Error("interrupted"));
      expect((await running).message).toBe("interrupted");
      expect({ isWaiting: argumentLists().some(isWaiting), ...hold }).toMatchObject({
        isWaiting: false,
        hasBegun: false,
      });
    });

    test("a node that disappears during a session is reported", async () => {
      const silent = `#!/bin/sh\nfor word; do case $word in LocalCommand=*) eval "$(echo "\${word#*=}" | sed 's/%%/%/g')" ;; esac; done\nexit 255\n`;
      const given = { environment: { PATH: await pathWithSsh(silent) } };
      expect(await failureOf(run(["true"], given, signal))).toMatchObject({
        id: "remote-command-failed",
      });
      expect(
        await failureOf(run(["true"], { ...given, port: await freePort() }, signal)),
      ).toMatchObject({
        id: "connection-failed",
        facts: { node: "master_0" },
        message: expect.stringContaining("not known"),
      });
      expect(hold.hasBegun).toBe(true);
    });

    const program = join(import.meta.dir, "terminal-program.ts");

    // Nothing on the node watches this program: what users start in the background must outlive its session.
    test("a command goes on when this program is killed", async () => {
      const { scratch, server } = setting();
      const [begun, ended] = [join(scratch.path, "begun"), join(scratch.path, "ended")];
      const words = [`touch '${begun}'; read line; sleep 1; touch '${ended}'`];
      const request = { folder: scratch.path, port: server.port, words, terminal: false };
      const child = Bun.spawn(["bun", program, JSON.stringify(request)], {
        stdio: ["pipe", "ignore", "inherit"],
      });
      await until("the command has begun", () => existsSync(begun));
      child.kill("SIGKILL");
      await child.exited;
      await until("the command has ended by itself", () => existsSync(ended));
    });

    // Shows R77.
    test("on a terminal the command has a terminal, and the script is passed in another way", async () => {
      const { scratch, server } = setting();
      const request = {
        folder: scratch.path,
        port: server.port,
        words: ['tty; stty size; echo "$SECRET"; exit 9'],
        terminal: true,
      };
      const line = `stty rows 33 cols 77; exec bun ${program} '${JSON.stringify(request)}'`;
      const child = Bun.spawn(["script", "-qec", line, join(scratch.path, "transcript")], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, SECRET: "hush" },
      });
      const output = await new Response(child.stdout).text();
      expect(output).toMatch(/\/dev\/pts\/\d+\r\n33 77\r\nhush\r\n$/);
      expect(await child.exited).toBe(9);
      expect((await readdir("/dev/shm")).filter((name) => name.startsWith("e2e-"))).toEqual([]);
    });
  },
);
