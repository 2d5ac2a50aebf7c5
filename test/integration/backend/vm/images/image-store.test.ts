/** Disk images from web servers on loopback are verified, kept, and resumed after an interruption. */

import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import {
  type MachineImage,
  findImage,
  imageFolder,
  obtainImage,
} from "../../../../../src/backend/vm/images/image-store.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import {
  artifactBytes,
  rangeAnswer,
  webServer,
} from "../../../platform/artifact/artifact-server.ts";

const x64 = architectureOf("x64");
const bytes = artifactBytes(300_000, "QFI");
const sumOf = (algorithm: string) => createHash(algorithm).update(bytes).digest("hex");
const size = { memoryMegabytes: 2048, cpus: 2, diskMegabytes: 20_480 };
const distribution = "debian-12";

const obtaining = (cache: string) => ({
  environment: { XDG_CACHE_HOME: cache },
  clock: systemClock,
  progress: silentProgress,
});

const published = (origin: string): MachineImage => ({
  name: "the image",
  path: undefined,
  source: {
    url: `${origin}/disk.qcow2`,
    prefix: "debian-12-x86_64",
    sums: { listUrl: `${origin}/SHA512SUMS` },
  },
});

test("an image is verified with its publisher's checksum, and reused from then on", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) =>
    request.url.endsWith("SUMS")
      ? new Response(`${sumOf("sha512")}  disk.qcow2\n`)
      : rangeAnswer(request, bytes, {}),
  );
  const path = await obtainImage(
    { ...obtaining(cache.path), signal: neverAborted },
    published(server.origin),
  );
  expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
  const found = await findImage(
    { distribution, options: size },
    x64,
    obtaining(cache.path).environment,
  );
  const name = path.slice(path.lastIndexOf("/") + 1);
  expect(found).toEqual({ name, path, isStored: true });
  expect(await readdir(imageFolder(obtaining(cache.path).environment))).toEqual([
    name,
    `${name}.verified`,
  ]);
  expect(await obtainImage({ ...obtaining(cache.path), signal: neverAborted }, found)).toBe(path);
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["with the publisher's checksum", { sum: "publisher" }],
  ["with the user's checksum", { sum: "user" }],
])(
  "a stored image %s that was changed later is refused, and one that was only touched is read again",
  async (_, by) => {
    await using cache = await scratchFolder();
    await using server = webServer((request) =>
      request.url.endsWith("SUMS")
        ? new Response(`${sumOf("sha512")}  disk.qcow2\n`)
        : rangeAnswer(request, bytes, {}),
    );
    const { environment } = obtaining(cache.path);
    const image = { source: `${server.origin}/disk.qcow2`, sha256: sumOf("sha256") };
    const options = by.sum === "user" ? { ...size, image } : size;
    const first =
      by.sum === "user"
        ? await findImage({ distribution, options }, x64, environment)
        : published(server.origin);
    const path = await obtainImage({ ...obtaining(cache.path), signal: neverAborted }, first);
    const again = async () => {
      const { progress, steps } = recordingProgress();
      const found = await findImage({ distribution, options }, x64, environment);
      return {
        steps,
        outcome: await obtainImage(
          { ...obtaining(cache.path), progress, signal: neverAborted },
          found,
        ).catch(String),
      };
    };
    expect(await again()).toEqual({ steps: [], outcome: path });
    await utimes(path, 1, 1);
    expect(await again()).toEqual({
      steps: [expect.stringMatching(/^Verify the stored image .*: done$/)],
      outcome: path,
    });
    expect(await again()).toEqual({ steps: [], outcome: path });
    const { mtime } = await stat(path);
    await writeFile(path, bytes.with(200_000, bytes[200_000]! ^ 1));
    await utimes(path, mtime, mtime);
    expect((await again()).outcome).toContain(`checksum`);
    expect((await again()).outcome).toContain(`checksum`);
  },
);

test("an image that an earlier version stored is compared with the part of the sum in its name", async () => {
  await using cache = await scratchFolder();
  const { environment } = obtaining(cache.path);
  const folder = imageFolder(environment);
  await mkdir(folder, { recursive: true });
  const path = join(folder, `debian-12-x86_64-${sumOf("sha512").slice(0, 16)}.img`);
  await writeFile(path, bytes);
  const found = await findImage({ distribution, options: size }, x64, environment);
  expect(await obtainImage({ ...obtaining(cache.path), signal: neverAborted }, found)).toBe(path);
  await rm(`${path}.verified`);
  await writeFile(path, "another");
  expect(
    (await failureOf(obtainImage({ ...obtaining(cache.path), signal: neverAborted }, found))).id,
  ).toBe("image-not-found");
});

test("only this user can read or write the store, even if it was open to others before", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) =>
    request.url.endsWith("SUMS")
      ? new Response(`${sumOf("sha512")}  disk.qcow2\n`)
      : rangeAnswer(request, bytes, {}),
  );
  const folder = imageFolder(obtaining(cache.path).environment);
  await mkdir(folder, { recursive: true });
  for (const open of [folder, dirname(folder)]) await chmod(open, 0o777);
  const path = await obtainImage(
    { ...obtaining(cache.path), signal: neverAborted },
    published(server.origin),
  );
  const modes = [dirname(folder), folder, path, `${path}.verified`].map(
    async (each) => (await stat(each)).mode & 0o777,
  );
  expect(await Promise.all(modes)).toEqual([0o700, 0o700, 0o600, 0o600]);
  // A record that others could have written proves nothing.
  await writeFile(path, "another");
  await chmod(`${path}.verified`, 0o666);
  const found = await findImage(
    { distribution, options: size },
    x64,
    obtaining(cache.path).environment,
  );
  expect(
    (await failureOf(obtainImage({ ...obtaining(cache.path), signal: neverAborted }, found))).id,
  ).toBe("image-not-found");
});

test("an interrupt while the publisher's checksums are read is no failure of the network", async () => {
  await using cache = await scratchFolder();
  const asked = Promise.withResolvers<void>();
  await using server = webServer(async () => {
    asked.resolve();
    return new Promise<Response>(() => {});
  });
  const interrupted = new AbortController();
  const obtained = failureOf(
    obtainImage({ ...obtaining(cache.path), signal: interrupted.signal }, published(server.origin)),
  );
  await asked.promise;
  interrupted.abort(new Error("interrupted"));
  expect((await obtained).message).toBe("interrupted");
});

test("the progress of a download is shown in megabytes", async () => {
  await using cache = await scratchFolder();
  const large = artifactBytes(2_400_000, "QFI");
  await using server = webServer((request) => rangeAnswer(request, large, {}));
  const sha256 = createHash("sha256").update(large).digest("hex");
  const options = { ...size, image: { source: `${server.origin}/disk.qcow2`, sha256 } };
  const missing = await findImage({ distribution, options }, x64, { XDG_CACHE_HOME: cache.path });
  const { progress, steps, updates } = recordingProgress();
  await obtainImage({ ...obtaining(cache.path), progress, signal: neverAborted }, missing);
  expect(updates.slice(-2)).toEqual(["2 of 2 MB", "verifying its checksum"]);
  expect(steps).toEqual([`Download the image ${server.origin}/disk.qcow2: done`]);
});

test("an interrupt while an image is verified keeps the download", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) => rangeAnswer(request, bytes, {}));
  const options = {
    ...size,
    image: { source: `${server.origin}/disk.qcow2`, sha256: sumOf("sha256") },
  };
  const missing = await findImage({ distribution, options }, x64, { XDG_CACHE_HOME: cache.path });
  const interrupted = new AbortController();
  const start = () => ({
    update: (text: string) =>
      text.startsWith("verifying") && interrupted.abort(new Error("interrupted")),
    done: () => {},
    [Symbol.dispose]: () => {},
  });
  const progress = { ...silentProgress, start };
  await failureOf(
    obtainImage({ ...obtaining(cache.path), progress, signal: interrupted.signal }, missing),
  );
  const [part, ...rest] = await readdir(imageFolder(obtaining(cache.path).environment));
  expect([part, rest]).toEqual([expect.stringMatching(/\.img\.part$/), []]);
});

test("an unfinished download, and another distribution's image, are not taken for the image", async () => {
  await using cache = await scratchFolder();
  const { environment } = obtaining(cache.path);
  await mkdir(imageFolder(environment), { recursive: true });
  for (const name of [
    "debian-12-x86_64-0123.img.part",
    "debian-13-x86_64-0123.img",
    "debian-12-x86_64-4567.txt",
  ])
    await writeFile(join(imageFolder(environment), name), "");
  expect((await findImage({ distribution, options: size }, x64, environment)).path).toBeUndefined();
});

test("a broken image is rejected and deleted", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) =>
    request.url.endsWith("SUMS")
      ? new Response(`${"0".repeat(64)}  disk.qcow2\n`)
      : new Response(bytes),
  );
  const failure = await failureOf(
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, published(server.origin)),
  );
  expect(failure.id).toBe("image-not-found");
  expect(failure.message).toContain(`has the sha256 checksum ${sumOf("sha256")}`);
  expect(failure.hint).toContain("deleted");
  expect(await readdir(imageFolder(obtaining(cache.path).environment))).toEqual([]);
});

test("an interrupted download, even of an earlier run, resumes where it stopped", async () => {
  await using cache = await scratchFolder();
  const ranges: (string | null)[] = [];
  await using server = webServer((request) => {
    ranges.push(request.headers.get("range"));
    return rangeAnswer(request, bytes, {});
  });
  const environment = { XDG_CACHE_HOME: cache.path };
  const image = { source: `${server.origin}/disk.qcow2`, sha256: sumOf("sha256") };
  const options = { ...size, image };
  const gone = new AbortController();
  gone.abort(new Error("stopped"));
  const missing = await findImage({ distribution, options }, x64, environment);
  expect(missing.path).toBeUndefined();
  expect(
    (await failureOf(obtainImage({ ...obtaining(cache.path), signal: gone.signal }, missing)))
      .message,
  ).toBe("stopped");
  const part = join(imageFolder(environment), `own-${image.sha256.slice(0, 16)}.img.part`);
  await writeFile(part, bytes.subarray(0, 100_000));
  const path = await obtainImage({ ...obtaining(cache.path), signal: neverAborted }, missing);
  expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
  expect(ranges).toEqual(["bytes=100000-"]);
  expect((await findImage({ distribution, options }, x64, environment)).path).toBe(path);
});

test("two creates at once download an image once", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) => rangeAnswer(request, bytes, {}));
  const image = { source: `${server.origin}/disk.qcow2`, sha256: sumOf("sha256") };
  const request = { distribution, options: { ...size, image } };
  const missing = await findImage(request, x64, { XDG_CACHE_HOME: cache.path });
  const both = [1, 2].map(async () =>
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, missing),
  );
  const [first, second] = await Promise.all(both);
  expect(first).toBe(second);
  expect(server.requests).toHaveLength(1);
});

test("a URL without an image, or a list without its checksum, is an error that says so", async () => {
  await using cache = await scratchFolder();
  await using server = webServer((request) =>
    request.url.endsWith("SUMS") ? new Response("# none\n") : new Response("gone", { status: 404 }),
  );
  const unlisted = await failureOf(
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, published(server.origin)),
  );
  expect(unlisted.message).toContain("it does not list the image");
  const list = `${sumOf("sha512")}  disk.qcow2\n`;
  await using empty = webServer(() => new Response(list, { status: 404 }));
  const listless = await failureOf(
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, published(empty.origin)),
  );
  expect(listless.message).toMatch(/^Cannot get the image's checksum from .*: HTTP 404\.$/);
  const image = { source: `${server.origin}/disk.qcow2?token=verysecret`, sha256: sumOf("sha256") };
  const missing = await findImage({ distribution, options: { ...size, image } }, x64, {
    XDG_CACHE_HOME: cache.path,
  });
  const failure = await failureOf(
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, missing),
  );
  expect(failure.message).toContain("HTTP 404");
  expect(failure.message).not.toContain("verysecret");
});

test("the user's own file is used in place, if it exists and has the given checksum", async () => {
  await using cache = await scratchFolder();
  const source = join(cache.path, "own.qcow2");
  const find = (image: { readonly source: string; readonly sha256?: string }) =>
    findImage({ distribution, options: { ...size, image } }, x64, { XDG_CACHE_HOME: cache.path });
  expect((await failureOf(find({ source }))).id).toBe("image-not-found");
  await writeFile(source, bytes);
  expect(
    await obtainImage({ ...obtaining(cache.path), signal: neverAborted }, await find({ source })),
  ).toBe(source);
  const { progress, steps } = recordingProgress();
  const right = await find({ source, sha256: sumOf("sha256") });
  await obtainImage({ ...obtaining(cache.path), progress, signal: neverAborted }, right);
  // Reading gigabytes takes a while.
  expect(steps).toEqual(["Verify the image own.qcow2: done"]);
  const wrong = await find({ source, sha256: "0".repeat(64) });
  const failure = await failureOf(
    obtainImage({ ...obtaining(cache.path), signal: neverAborted }, wrong),
  );
  expect(failure).toMatchObject({
    id: "image-not-found",
    message: expect.stringContaining(sumOf("sha256")),
  });
  expect(failure.hint).toContain("`imageSha256`");
  expect(await readFile(source)).toHaveLength(bytes.length);
});
