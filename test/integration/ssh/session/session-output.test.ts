/** A command's output on this program's own streams, which ssh shares with the caller. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createKnownHosts, renderSshConfig } from "../../../../src/ssh/openssh-files.ts";
import type { TemporaryFolder } from "../../../../src/system/files/private-file.ts";
import { streamKinds, streamsLack, streamsScript } from "../../../support/blocking-streams.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { destinationOf, wireKey } from "../../../support/ssh-options.ts";

const lack = opensshLack ?? streamsLack;
const kinds = Object.keys(streamKinds) as (keyof typeof streamKinds)[];

describe.skipIf(lack !== undefined)(`the output of a session (${lack ?? "here"})`, () => {
  const hold: { setting?: { readonly server: OpensshServer; readonly scratch: TemporaryFolder } } =
    {};
  const configuration = (): string => join(hold.setting!.scratch.path, "config");

  beforeAll(async () => {
    const [server, scratch] = await Promise.all([startOpensshServer([]), scratchFolder()]);
    hold.setting = { server, scratch };
    const knownHosts = createKnownHosts(join(scratch.path, "hosts"));
    await knownHosts.pin("127.0.0.1", server.port, wireKey(server.firstHostKey.publicKey));
    const files = { identityFile: join(scratch.path, "key"), knownHostsFile: knownHosts.path };
    await writeFile(files.identityFile, server.loginKey.privateKey, { mode: 0o600 });
    await writeFile(configuration(), renderSshConfig([destinationOf(server)], files));
  });
  afterAll(async () => {
    await hold.setting?.server[Symbol.asyncDispose]();
    await hold.setting?.scratch[Symbol.asyncDispose]();
  });

  /** Runs a bash script in which `$RUN COMMAND` runs a command on the node. */
  async function bash(script: string) {
    await using folder = await scratchFolder();
    const program = join(import.meta.dir, "session-program.ts");
    const env = {
      ...process.env,
      RUN: `${process.execPath} ${program} ${configuration()}`,
      FOLDER: folder.path,
      REPORT: join(folder.path, "report"),
    };
    const child = Bun.spawn(["bash", "-c", script], {
      cwd: folder.path,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr, status] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    const report = await readFile(env.REPORT, "utf8").catch(() => "");
    return { stdout, stderr, status, streams: [...new Set(report.split("\n").filter(Boolean))] };
  }

  test.each(kinds)(
    "leaves the streams blocking, also while it runs and after ssh or this program is killed: %s",
    async (kind) => {
      const start = `$RUN "echo out; echo err >&2; touch $FOLDER/begun; exec sleep 50" & pid=$!
        until [ -e begun ]; do sleep 0.05; done; rm begun; report; children=$(cat /proc/$pid/task/$pid/children)`;
      const lines = [
        `$RUN "echo out; echo err >&2"; report`,
        `$RUN "exit 3"; report`,
        `${start}; kill -KILL $children; wait $pid; report`,
        `${start}; kill -INT $pid; wait $pid; report`,
        `${start}; kill -KILL $pid; wait $pid; report; kill -KILL $children`,
      ];
      expect((await bash(streamsScript(kind, lines.join("\n")))).streams).toEqual(["blocking"]);
    },
  );

  test.each([
    ["a file", "$RUN 'seq 200000' >out; cat out"],
    ["a pipe", "$RUN 'seq 200000' | (sleep 0.3; cat)"],
    ["a socket", "$RUN 'seq 200000'"],
  ])("arrives whole in %s", async (_, line) => {
    const { stdout, stderr } = await bash(line);
    expect({ bytes: stdout.length, end: stdout.slice(-7), stderr }).toEqual({
      bytes: 1_288_895,
      end: "200000\n",
      stderr: "",
    });
  });

  test.each([
    ["$RUN yes | head -1; echo ${PIPESTATUS[0]}", "y\n141\n"],
    ["{ $RUN yes; } > >(head -1)", "y\n"],
  ])("ends as by SIGPIPE when its reader has gone, which is no error: %s", async (line, stdout) => {
    expect(await bash(line)).toMatchObject({ stdout, stderr: "" });
  });

  test.each(["$RUN 'echo out' >/dev/full", "$RUN yes >/dev/full", "$RUN 'echo out' >&-"])(
    "that can't be written is a failure: %s",
    async (line) => {
      expect(await bash(line)).toMatchObject({ status: 1, stderr: "output-lost\n" });
    },
  );

  test.each([
    ["$RUN 'exit 3' >&-", 3],
    ["$RUN 'echo out; echo err >&2' 2>&-", 0],
  ])("that is empty, or for stderr, may have no place: %s", async (line, status) => {
    expect(await bash(line)).toMatchObject({ status });
  });

  test("that nobody reads stops no interrupt", async () => {
    const line = `{ $RUN "yes" & pid=$!; sleep 1; kill -INT $pid; wait $pid; echo "ended $?" >&2; } > >(sleep 50 & echo $! >reader; wait)`;
    const { stderr } = await bash(`${line}; kill $(cat reader)`);
    expect(stderr).toContain("ended 1\n");
  });
});
