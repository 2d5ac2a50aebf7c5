import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "bun:test";
import type { ClusterError } from "../../../../src/errors.ts";
import {
  type DownloadRequest,
  downloadArtifact,
} from "../../../../src/platform/artifact/artifact-download.ts";
import { parseArtifactLocation } from "../../../../src/platform/artifact/artifact-request.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { artifactBytes, cutAnswer, rangeAnswer, rawServer, webServer } from "./artifact-server.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const secret = "hunter2-token";
const bytes = artifactBytes(300_000);
const sum = createHash("sha256").update(bytes).digest("hex");

const request = (
  workspaceFolder: string,
  part: Partial<DownloadRequest> = {},
): DownloadRequest => ({
  // On this clock, pauses take no time.
  clock: { now: () => systemClock.now(), sleep: async () => {} },
  workspaceFolder,
  sha256: undefined,
  deadlineMs: Infinity,
  stallLimitMs: 10_000,
  onProgress: () => {},
  ...part,
});

const download = (url: string, given: DownloadRequest, signal = neverAborted) =>
  downloadArtifact(parseArtifactLocation(url, "/").value!, given, signal);

async function failure(
  url: string,
  given: DownloadRequest,
  signal = neverAborted,
): Promise<ClusterError> {
  const error: unknown = await download(url, given, signal).then(
    () => new Error("it was downloaded"),
    (thrown: unknown) => thrown,
  );
  expect(Bun.inspect(error, { depth: 10 })).not.toContain(secret);
  expect(await readdir(given.workspaceFolder)).toEqual([]);
  return error as ClusterError;
}

// Shows R47.
test("a download is in a private folder of the workspace, and is removed after use", async () => {
  await using workspace = await scratchFolder();
  await using server = webServer((asked) => rangeAnswer(asked, bytes, {}));
  const progress: (number | undefined)[][] = [];
  {
    const onProgress: DownloadRequest["onProgress"] = (...numbers) => progress.push(numbers);
    await using artifact = await download(
      `${server.origin}/a?${secret}`,
      request(workspace.path, { sha256: sum.toUpperCase(), onProgress }),
    );
    expect(artifact.file.source).toStartWith(`${workspace.path}/`);
    expect(artifact.file.sizeBytes).toBe(bytes.length);
    expect(bytes.equals(await readFile(artifact.file.source))).toBe(true);
    expect((await stat(artifact.file.source)).mode & 0o777).toBe(0o600);
    const [folder] = await readdir(workspace.path);
    expect((await stat(join(workspace.path, folder!))).mode & 0o777).toBe(0o700);
  }
  expect(await readdir(workspace.path)).toEqual([]);
  expect(progress.at(-1)).toEqual([bytes.length, bytes.length]);
  expect(server.requests.map(({ headers }) => headers.get("accept-encoding"))).toEqual([
    "identity",
  ]);
});

test.each([
  ["an entity tag", "ETag", '"v1"'],
  ["a date", "Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"],
])("an interrupted transfer resumes where it stopped, with %s", async (_kind, name, value) => {
  await using workspace = await scratchFolder();
  const headers = `${name}: ${value}\r\n`;
  await using server = await rawServer((asked) =>
    cutAnswer(bytes, 120_000, { headers, request: asked }),
  );
  await using artifact = await download(server.origin, request(workspace.path, { sha256: sum }));
  expect(bytes.equals(await readFile(artifact.file.source))).toBe(true);
  const [first, ...rest] = server.requests.map((text) => ({
    offset: Number(/^range: bytes=(\d+)-\r/im.exec(text)?.[1] ?? 0),
    validator: /^if-range: (.*?)\r/im.exec(text)?.[1],
  }));
  expect(first).toEqual({ offset: 0, validator: undefined });
  // On a busy computer, a connection may be closed before anything was read from it: then nothing can be resumed yet.
  expect(rest.at(-1)?.offset).toBeGreaterThan(0);
  expect(
    rest.every(
      ({ offset, validator }, index) =>
        offset >= (rest[index - 1]?.offset ?? 0) && validator === (offset > 0 ? value : undefined),
    ),
  ).toBe(true);
});

test.each([
  ["gives nothing to recognise the file by", ""],
  ["has only a weak entity tag", 'ETag: W/"v1"\r\n'],
])("if the server %s, the transfer starts over", async (_case, headers) => {
  await using workspace = await scratchFolder();
  await using server = await rawServer((_asked, count) =>
    cutAnswer(bytes, count === 1 ? 100_000 : bytes.length, { headers }),
  );
  await using artifact = await download(server.origin, request(workspace.path, { sha256: sum }));
  expect(artifact.file.sizeBytes).toBe(bytes.length);
  expect(server.requests.join("")).not.toMatch(/^(if-)?range:/im);
});

test("a server that sends more than the file has is refused once", async () => {
  await using workspace = await scratchFolder();
  const headers = { "content-range": `bytes 0-9/10` };
  await using server = webServer(() => new Response(bytes, { status: 206, headers }));
  expect(await failure(server.origin, request(workspace.path))).toMatchObject({
    id: "artifact-unreachable",
    message: expect.stringContaining("the server sends more than 10 bytes."),
    transient: false,
  });
  expect(server.requests).toHaveLength(1);
});

const mountLack =
  process.getuid?.() === 0 && process.platform === "linux"
    ? undefined
    : "only root on Linux can mount a small disk";

test.skipIf(mountLack !== undefined)(
  `the rest of a transfer only needs space for the rest (${mountLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const workspace = join(scratch.path, "workspace");
    await mkdir(workspace);
    await Bun.$`mount -t tmpfs -o size=512k tmpfs ${workspace}`.quiet();
    try {
      const headers = 'ETag: "v1"\r\n';
      await using server = await rawServer((asked, count) =>
        cutAnswer(bytes, count === 1 ? 250_000 : Infinity, { headers, request: asked }),
      );
      await using artifact = await download(server.origin, request(workspace));
      expect(artifact.file.sizeBytes).toBe(bytes.length);
    } finally {
      await Bun.$`umount --lazy ${workspace}`.quiet();
    }
  },
);

test("if the server encodes the file all the same, it is decoded, and a transfer that is cut off starts over", async () => {
  await using workspace = await scratchFolder();
  const headers = 'ETag: "v1"\r\nContent-Encoding: gzip\r\n';
  // Something that gets no smaller: the server has ranges wherever a transfer can break off.
  const artifact = Buffer.concat([Buffer.from("#!/bin/bash\n"), randomBytes(300_000)]);
  const encoded = gzipSync(artifact);
  await using server = await rawServer((asked, count) =>
    cutAnswer(encoded, count === 1 ? encoded.length - 20 : encoded.length, {
      headers,
      request: asked,
    }),
  );
  await using local = await download(server.origin, request(workspace.path));
  expect(artifact.equals(await readFile(local.file.source))).toBe(true);
});

test("if the file has changed meanwhile, the new one is downloaded completely", async () => {
  await using workspace = await scratchFolder();
  const newer = artifactBytes(200_000, "#!/bin/bash\n# newer\n");
  await using server = await rawServer((_asked, count) =>
    count === 1
      ? cutAnswer(bytes, 250_000, { headers: 'ETag: "v1"\r\n' })
      : cutAnswer(newer, newer.length, { headers: 'ETag: "v2"\r\n' }),
  );
  await using artifact = await download(server.origin, request(workspace.path));
  expect(newer.equals(await readFile(artifact.file.source))).toBe(true);
});

test("if the server answers 416 to the rest, the whole file is requested", async () => {
  await using workspace = await scratchFolder();
  await using server = await rawServer((_asked, count) => {
    if (count === 1) return cutAnswer(bytes, 100_000, { headers: 'ETag: "v1"\r\n' });
    return count === 2
      ? "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      : cutAnswer(bytes, bytes.length);
  });
  await using artifact = await download(server.origin, request(workspace.path, { sha256: sum }));
  expect(artifact.file.sizeBytes).toBe(bytes.length);
});

test("if the server sends less than the requested rest, it is asked for more", async () => {
  await using workspace = await scratchFolder();
  const part = (first: number, last: number): Uint8Array => {
    const range = `Content-Range: bytes ${first}-${last}/${bytes.length}\r\n`;
    const head = `HTTP/1.1 206 Partial Content\r\nContent-Length: ${last - first + 1}\r\n${range}ETag: "v1"\r\nConnection: close\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), bytes.subarray(first, last + 1)]);
  };
  await using server = await rawServer((asked, count) => {
    if (count === 1) return cutAnswer(bytes, 100_000, { headers: 'ETag: "v1"\r\n' });
    const first = Number(/^range: bytes=(\d+)-/im.exec(asked)?.[1]);
    return part(first, Math.min(first + 99_999, bytes.length - 1));
  });
  await using artifact = await download(server.origin, request(workspace.path));
  expect(artifact.file.sizeBytes).toBe(bytes.length);
  expect(bytes.equals(await readFile(artifact.file.source))).toBe(true);
});

test("a part other than the requested one is rejected", async () => {
  await using workspace = await scratchFolder();
  await using server = await rawServer((_asked, count) =>
    count === 1
      ? cutAnswer(bytes, 100_000, { headers: 'ETag: "v1"\r\n' })
      : cutAnswer(bytes, bytes.length, { headers: 'ETag: "v1"\r\n', request: "range: bytes=77-" }),
  );
  const different = {
    id: "artifact-unreachable",
    message: expect.stringContaining("different part"),
  };
  expect(await failure(server.origin, request(workspace.path))).toMatchObject(different);
});

test("a transfer that keeps breaking off fails and leaves nothing", async () => {
  await using workspace = await scratchFolder();
  await using server = await rawServer(() => cutAnswer(bytes, 1000));
  const error = await failure(`${server.origin}/a?${secret}`, request(workspace.path));
  expect([error.id, server.requests.length]).toEqual(["artifact-unreachable", 5]);
  expect(error).toMatchObject({ transient: true, facts: { artifact: `${server.origin}/a?***` } });
  expect(error.message).not.toContain(secret);
});

test("a stalled transfer is aborted", async () => {
  await using workspace = await scratchFolder();
  await using server = webServer((_asked, count) => {
    if (count > 1) return new Response(bytes);
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(bytes.subarray(0, 1000)),
      pull: () => new Promise<void>(() => {}),
    });
    return new Response(body, { headers: { "content-length": String(bytes.length) } });
  });
  await using artifact = await download(
    server.origin,
    request(workspace.path, { sha256: sum, stallLimitMs: 300 }),
  );
  expect([artifact.file.sizeBytes, server.requests.length]).toEqual([bytes.length, 2]);
});

test("a wrong checksum is an error that shows both checksums", async () => {
  await using workspace = await scratchFolder();
  await using server = webServer(() => new Response(bytes));
  const sha256 = "0".repeat(64);
  const error = await failure(`${server.origin}/a?${secret}`, request(workspace.path, { sha256 }));
  expect([error.id, error.message]).toEqual([
    "artifact-invalid",
    `The artifact ${server.origin}/a?*** has the SHA-256 checksum ${sum}, not ${sha256}.`,
  ]);
});

test("a web page instead of the artifact is rejected", async () => {
  await using workspace = await scratchFolder();
  await using server = webServer(() => new Response("<html>expired</html>"));
  expect((await failure(server.origin, request(workspace.path))).id).toBe("artifact-invalid");
});

test("an artifact that doesn't fit on the disk is rejected before the download", async () => {
  await using workspace = await scratchFolder();
  await using server = await rawServer(
    () => "HTTP/1.1 200 OK\r\nContent-Length: 900000000000000\r\nConnection: close\r\n\r\n#!",
  );
  const error = await failure(server.origin, request(workspace.path));
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toMatch(/ has [\d.]+ GB of free space, but 900000\.0 GB are required\.$/);
});

test("an abort during the download leaves nothing", async () => {
  await using workspace = await scratchFolder();
  const abort = new AbortController();
  await using server = webServer(
    () =>
      new Response(
        new ReadableStream({
          pull: async (controller) => {
            controller.enqueue(bytes.subarray(0, 1000));
            await Bun.sleep(5);
          },
        }),
      ),
  );
  const onProgress: DownloadRequest["onProgress"] = (received) => {
    if (received > 5000) abort.abort(new Error("interrupted"));
  };
  const error = await failure(server.origin, request(workspace.path, { onProgress }), abort.signal);
  expect(error.message).toBe("interrupted");
});

test("a local artifact is used in place, and stays", async () => {
  await using workspace = await scratchFolder();
  await using home = await scratchFolder();
  const path = join(home.path, "a.sh");
  await Bun.write(path, bytes);
  {
    await using artifact = await download(path, request(workspace.path, { sha256: sum }));
    expect([artifact.file.source, artifact.file.sizeBytes]).toEqual([path, bytes.length]);
    expect(await readdir(workspace.path)).toEqual([]);
  }
  expect(await readdir(home.path)).toEqual(["a.sh"]);
  expect((await failure(path, request(workspace.path, { sha256: "f".repeat(64) }))).id).toBe(
    "artifact-invalid",
  );
});
