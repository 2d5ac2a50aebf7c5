/** A crash of the runtime writes no memory to the disk and no secrets to the terminal. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { join } from "node:path";
import { executablePath } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const state: { folder?: Awaited<ReturnType<typeof temporaryFolder>>; silence?: Server } = {};

beforeAll(async () => {
  state.folder = await temporaryFolder();
  // Takes requests and never answers, so that the program waits until it crashes.
  state.silence = createServer(() => {});
  await new Promise<void>((resolve) => {
    state.silence?.listen(0, "127.0.0.1", resolve);
  });
});

afterAll(async () => {
  state.silence?.close();
  await state.folder?.[Symbol.asyncDispose]();
});

interface Crash {
  readonly stderr: string;
  /** The program's limit, while it ran. */
  readonly coreLimit: string;
  /** Files that the crash left where the program had been started. */
  readonly left: readonly string[];
}

/**
 * Starts the program in a shell that allows core dumps of any size, and lets it crash as soon as it waits for the
 * cloud.
 */
async function crash(name: string, words: readonly string[], stdin: string): Promise<Crash> {
  const folder = join(state.folder!.path, name);
  await mkdir(folder);
  await writeFile(join(folder, "secrets.env"), "TOKEN=t0ken-in-a-file\n");
  const asked = new Promise<void>((resolve) => {
    state.silence!.once("connection", () => resolve());
  });
  const child = Bun.spawn(
    ["sh", "-c", 'ulimit -c unlimited; exec "$0" "$@"', executablePath("cluster-cloud"), ...words],
    {
      cwd: folder,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: folder,
        XDG_STATE_HOME: join(folder, ".state"),
        CLOUD_ACCESS_KEY_ID: "AKIDEXAMPLE",
        CLOUD_SECRET_ACCESS_KEY: "cloud-s3cret",
        AWS_ENDPOINT_URL_EC2: `http://127.0.0.1:${(state.silence!.address() as AddressInfo).port}`,
      },
      stdin: new Blob([stdin]),
      stdout: "ignore",
      stderr: "pipe",
      timeout: 30_000,
    },
  );
  const stderr = new Response(child.stderr).text();
  await Promise.race([asked, child.exited]);
  const limits = await readFile(`/proc/${child.pid}/limits`, "utf8").catch(() => "");
  child.kill("SIGSEGV");
  await child.exited;
  return {
    stderr: await stderr,
    coreLimit: /^Max core file size +(\S+)/m.exec(limits)?.[1] ?? "unknown",
    left: (await readdir(folder)).filter((file) => !file.startsWith(".") && file !== "secrets.env"),
  };
}

// Shows R127.
test.skipIf(process.platform !== "linux")("a crash leaves no core dump", async () => {
  const { coreLimit, left } = await crash("core", ["run", "--login-pw", "-", "true"], "pässw0rd\n");
  // One byte: less is no hindrance for programs that collect dumps.
  expect({ coreLimit, left }).toEqual({ coreLimit: "1", left: [] });
});

// Shows R127.
test("what a crash prints holds no secret from stdin or a file", async () => {
  const words = ["run", "--login-pw", "-", "--env-file", "secrets.env", "true"];
  const { stderr } = await crash("arguments", words, "s3cret-from-stdin\n");
  expect(stderr).toContain('"--env-file" "secrets.env"');
  expect(stderr).not.toContain("s3cret");
  expect(stderr).not.toContain("t0ken");
});
