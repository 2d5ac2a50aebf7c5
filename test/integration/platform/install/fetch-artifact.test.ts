/** The script by which a node downloads the artifact, with this machine's curl. */
import { expect, test } from "bun:test";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { curlConfig, fetchScript } from "../../../../src/platform/install/fetch-artifact.ts";
import { installWork } from "../../../../src/platform/install-paths.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { webServer } from "../artifact/artifact-server.ts";

const lack = Bun.which("curl") === null ? "no curl here" : undefined;
const mostBytes = 1024 * 1024;

async function fetchFrom(answer: () => Response) {
  await using scratch = await scratchFolder();
  await using server = webServer(answer);
  const artifact = join(scratch.path, "artifact.sh");
  const script = fetchScript(
    { ...installWork, folder: join(scratch.path, "work"), artifact },
    mostBytes,
  );
  const stdin = Buffer.from(curlConfig(server.origin).replace("retry = 2", "retry = 0"));
  const child = Bun.spawn(["sh", "-c", script], { stdin, stdout: "pipe", stderr: "pipe" });
  const [status, stderr] = await Promise.all([child.exited, child.stderr.text()]);
  const left = await readdir(join(scratch.path, "work"));
  return { status, stderr, left, text: await readFile(artifact, "utf8").catch(() => undefined) };
}

test.skipIf(lack !== undefined)(
  `the artifact is there once it is complete (${lack ?? "here"})`,
  async () => {
    const whole = "x".repeat(mostBytes);
    expect(await fetchFrom(() => new Response(whole))).toEqual({
      status: 0,
      stderr: "",
      left: [],
      text: whole,
    });
  },
);

test.skipIf(lack !== undefined)(
  `a server that sends too much fills no disk (${lack ?? "here"})`,
  async () => {
    async function* tooMuch(): AsyncGenerator<string, void, undefined> {
      for (let sent = 0; sent < 3 * mostBytes; sent += 1024) yield "x".repeat(1024);
    }
    const { status, stderr, left, text } = await fetchFrom(() => new Response(tooMuch()));
    expect({ failed: status !== 0, left, text }).toEqual({
      failed: true,
      left: [],
      text: undefined,
    });
    expect(stderr).toEndWith(`the server sends more than ${mostBytes} bytes\n`);
  },
);
