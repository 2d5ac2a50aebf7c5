/** Downloads from a real server, which continue where the file on the disk ends. */
import { expect, test } from "bun:test";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { ClusterError } from "../../../../src/errors.ts";
import { type WebFailure, resumeDownload } from "../../../../src/system/files/download.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const whole = "0123456789";
/** `hasArrived`: whether the client has received something of this answer. */
type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  hasArrived: () => boolean,
) => unknown;

/** Sends the part that was asked for. */
const sendRange: Answer = ({ headers }, response) => {
  const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
  if (start >= whole.length) response.writeHead(416).end();
  else
    response
      .writeHead(start === 0 ? 200 : 206, {
        "content-length": whole.length - start,
        ...(start > 0 && { "content-range": `bytes ${start}-9/10` }),
      })
      .end(whole.slice(start));
};

/** Promises everything, and closes the connection when four bytes have arrived. */
const cutOff: Answer = async (_, response, hasArrived) => {
  response.writeHead(200, { "content-length": whole.length });
  response.write(whole.slice(0, 4));
  await until("four bytes have arrived", hasArrived);
  response.destroy();
};

const refuse =
  (status: number): Answer =>
  (_, response) =>
    void response.writeHead(status).end();

/** Downloads to a file with this content. The server gives these answers in turn; the last one stays. Pauses take no time. */
async function download(
  before: string,
  answers: readonly Answer[],
  { stallLimitMs = 10_000, signal = neverAborted } = {},
) {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  await writeFile(path, before);
  const progress: (readonly (number | undefined)[])[] = [];
  const ranges: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    ranges.push(request.headers.range);
    const shown = progress.length;
    answers[Math.min(ranges.length, answers.length) - 1]!(
      request,
      response,
      () => progress.length > shown,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const clock = scriptedClock();
  const request = {
    url: `http://127.0.0.1:${port}/`,
    path,
    clock,
    stallLimitMs,
    mostBytes: 1_000,
    onProgress: (received: number, total: number | undefined) =>
      void progress.push([received, total]),
    hasChecksum: true,
    space: { folder: folder.path, hint: "Free some." },
    failed: ({ cause, reason, transient = false }: WebFailure) =>
      new ClusterError("artifact-unreachable", reason, { hint: cause, transient }),
  };
  const downloading = resumeDownload(request, signal);
  const failure = await downloading.then(
    () => undefined,
    async () => failureOf(downloading),
  );
  server.closeAllConnections();
  server.close();
  const content = await readFile(path, "utf8").catch(() => undefined);
  return { content, ranges, progress, pauses: clock.pauses, failure };
}

test("an empty file gets everything, and a part of one the rest", async () => {
  expect(await download("", [sendRange])).toMatchObject({
    content: whole,
    ranges: [undefined],
    progress: [[10, 10]],
  });
  const rest = await download("0123", [sendRange]);
  expect(rest).toMatchObject({
    content: whole,
    ranges: ["bytes=4-"],
    progress: [[10, 10]],
    failure: undefined,
  });
});

test("a file that is there already is complete", async () => {
  expect(await download(whole, [sendRange])).toMatchObject({
    content: whole,
    ranges: ["bytes=10-"],
    failure: undefined,
  });
});

test("a server that sends everything again replaces the part", async () => {
  const all: Answer = (_, response) => void response.writeHead(200).end(whole);
  expect(await download("wrong", [all])).toMatchObject({ content: whole, failure: undefined });
  const announced: Answer = (_, response) =>
    void response.writeHead(200, { "content-length": 10 }).end(whole);
  expect(await download("wrong", [announced])).toMatchObject({
    content: whole,
    progress: [[10, 10]],
  });
});

test("a part of a single byte is continued", async () => {
  expect(await download("0", [sendRange])).toMatchObject({ content: whole, ranges: ["bytes=1-"] });
});

test("a transfer in which no data arrives is tried again, and says so in the end", async () => {
  const stall: Answer = (_, response) =>
    void response.writeHead(200, { "content-length": 10 }).write("0");
  const { failure, ranges } = await download("", [stall], { stallLimitMs: 500 });
  expect(failure).toMatchObject({
    id: "artifact-unreachable",
    message: expect.stringContaining("0.5 s"),
  });
  expect(ranges).toHaveLength(5);
});

const endless: Answer = async (_, response) => {
  response.writeHead(200);
  for (let sent = 0; sent < 1_000_000 && !response.destroyed; sent += 100) {
    response.write("x".repeat(100));
    await Bun.sleep(1);
  }
  response.end();
};
const sendEncoded =
  (encoding: string, body: Uint8Array): Answer =>
  ({ headers }, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
    const rest = body.subarray(start);
    const status = start === 0 ? 200 : 206;
    response
      .writeHead(status, { "content-encoding": encoding, "content-length": rest.length })
      .end(rest);
  };
const bomb = sendEncoded("gzip", gzipSync("x".repeat(1_500)));
const announceMuch: Answer = (_, response) =>
  void response.writeHead(200, { "content-length": 1_001 }).write("x");
const announceMuchMore: Answer = (_, response) =>
  void response
    .writeHead(206, { "content-length": 998, "content-range": "bytes 3-1000/1001" })
    .write("x");

test.each([
  ["sends without end", endless, "012"],
  ["sends little that becomes too much", bomb, ""],
  ["announces too much", announceMuch, "012"],
  ["announces too much after a part", announceMuchMore, "012"],
])("a server that %s is refused once, and nothing of it is kept", async (_name, answer, before) => {
  const { content, failure, ranges } = await download(before, [answer]);
  expect(failure).toMatchObject({
    message: "the server sends more than 1000 bytes.",
    hint: "size",
  });
  expect({ content, requests: ranges.length }).toEqual({ content: undefined, requests: 1 });
});

test.each([
  ["gzip", gzipSync(whole)],
  ["GZIP", gzipSync(whole)],
  ["deflate", deflateSync(whole)],
  ["br", brotliCompressSync(whole)],
])(
  "an answer that is encoded as %s although it should not be is decoded",
  async (encoding, body) => {
    const answer = sendEncoded(encoding, body);
    expect(await download("", [answer])).toMatchObject({
      content: whole,
      failure: undefined,
      progress: [[10, undefined]],
    });
    // The encoded file has no part that continues this one.
    const rest = await download("0123", [answer]);
    expect(rest).toMatchObject({
      content: whole,
      failure: undefined,
      ranges: ["bytes=4-", undefined],
    });
  },
);

test("an encoded transfer that is cut off begins again", async () => {
  const text = Array.from({ length: 300 }, (_, index) => index ** 2 % 97).join("");
  const body = gzipSync(text);
  const cut: Answer = async (_, response, hasArrived) => {
    response.writeHead(200, { "content-encoding": "gzip", "content-length": body.length });
    response.write(body.subarray(0, -20));
    await until("something has arrived", hasArrived);
    response.destroy();
  };
  const ended = await download("", [cut, sendEncoded("gzip", body)]);
  expect(ended).toMatchObject({
    content: text,
    ranges: [undefined, undefined],
    failure: undefined,
  });
});

test.each(["zstd", "gzip, gzip", "\u009b2J"])(
  "an answer encoded as %j is refused with the reason",
  async (encoding) => {
    const { failure, content, ranges } = await download("012", [
      sendEncoded(encoding, Bun.zstdCompressSync(whole)),
    ]);
    expect(failure?.message).toStartWith("the server encodes the file as ");
    expect(failure?.message).not.toContain("\u009b");
    expect({ content, requests: ranges.length }).toEqual({ content: "012", requests: 1 });
  },
);

test("an interrupted download ends with the reason", async () => {
  const reason = new Error("interrupted");
  expect((await download("", [sendRange], { signal: AbortSignal.abort(reason) })).failure).toBe(
    reason as never,
  );
});

test("a transfer that is cut off continues where it ended", async () => {
  const ended = await download("", [cutOff, sendRange]);
  expect(ended).toMatchObject({
    content: whole,
    ranges: [undefined, "bytes=4-"],
    pauses: [1000],
    failure: undefined,
  });
});

test("an answer that is shorter than it should be is no success", async () => {
  const ended = await download("0123", [
    (_, response) => void response.writeHead(206, { "content-range": "bytes 4-7/*" }).end("4567"),
    refuse(404),
  ]);
  expect(ended.failure).toBeUndefined();
  const short = await download("", [cutOff]);
  expect(short.failure).toMatchObject({ id: "artifact-unreachable", hint: "network" });
  expect(short.ranges).toHaveLength(5);
});

test.each([
  [500, 5],
  [503, 5],
  [429, 5],
  [408, 5],
  [404, 1],
  [403, 1],
  [416, 1],
])("a server that answers with %d is asked %d times", async (status, times) => {
  const { failure, ranges, pauses } = await download("", [refuse(status)]);
  expect(pauses).toEqual([1000, 2000, 3000, 4000].slice(0, times - 1));
  expect(failure).toMatchObject({
    message: expect.stringContaining(`(HTTP ${status})`),
    hint: "status",
  });
  expect([ranges.length, pauses.length]).toEqual([times, times - 1]);
});

test.skipIf(process.platform !== "linux")("a full disk is named, with the way out", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "full");
  await symlink("/dev/full", path);
  const server = createServer(sendRange as never);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const space = { folder: folder.path, hint: "Free some." };
  const failure = await failureOf(
    resumeDownload(
      {
        url: `http://127.0.0.1:${port}/`,
        path,
        clock: scriptedClock(),
        stallLimitMs: 10_000,
        mostBytes: 1_000,
        hasChecksum: true,
        space,
        onProgress: () => {},
        failed: ({ reason }) => new ClusterError("artifact-unreachable", reason),
      },
      neverAborted,
    ),
  );
  server.close();
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: `${folder.path} is full.`,
    hint: "Free some.",
  });
});

test("a file that cannot be opened is an error that names it", async () => {
  await using folder = await scratchFolder();
  const failure = await failureOf(
    resumeDownload(
      {
        url: "http://127.0.0.1:1/",
        path: folder.path,
        clock: scriptedClock(),
        stallLimitMs: 10_000,
        mostBytes: 1_000,
        hasChecksum: true,
        space: { folder: folder.path, hint: "Free some." },
        onProgress: () => {},
        failed: ({ reason }) => new ClusterError("artifact-unreachable", reason),
      },
      neverAborted,
    ),
  );
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: `Cannot write ${folder.path}: illegal operation on a directory.`,
  });
});
