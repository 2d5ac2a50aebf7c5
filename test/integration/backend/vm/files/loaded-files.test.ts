import { appendFile, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "bun:test";
import { exampleClusterFile } from "../../../../support/example-cluster-file.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { serveOnLoopback } from "../../../../support/loopback-server.ts";
import { sha256, takeApart } from "../../../../support/rewrite-cluster-file.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import {
  lack,
  testHere,
  megabyte,
  state,
  folder,
  good,
  image,
  loadFrom,
  load,
  left,
  withParts,
  disk,
  damaged,
} from "./example-files.ts";

beforeAll(async () => {
  if (lack !== undefined) return;
  state.folder = await scratchFolder();
  state.good = await exampleClusterFile(folder());
});

afterAll(async () => state.folder?.[Symbol.asyncDispose]());

testHere(
  `a disk is laid on the image from the file, which stays in the cache (${lack ?? "here"})`,
  async () => {
    const path = join(folder(), "good.zst");
    await writeFile(path, good().bytes);
    const taken = await takeApart(path);
    expect([...taken.contents.keys()]).toEqual([...good().contents.keys()]);
    for (let times = 0; times < 2; times += 1) {
      const [backing, format] = await load(path);
      expect(backing).toStartWith(join(folder(), "cache", "cluster-e2e", "images", "own-"));
      expect(format).toBe("raw");
      expect(await readFile(backing!)).toEqual(good().contents.get("layer-0")!);
      expect((await Bun.file(backing!).stat()).blocks).toBe(0);
      expect(await left()).toEqual([]);
    }
  },
);

testHere(
  "a disk's own name for its layer doesn't matter: QEMU opens the one from the file",
  async () => {
    const path = join(folder(), "named.zst");
    const secret = join(folder(), "secret.raw");
    await writeFile(secret, "secret");
    const named = await image("-u", "-b", secret, "-F", "raw", "PATH", "2M");
    await writeFile(path, withParts({ [disk]: named }));
    const [backing] = await load(path);
    expect(backing).toStartWith(join(folder(), "cache"));
  },
);

testHere("an image in the cache that somebody has changed is not used", async () => {
  const path = join(folder(), "again.zst");
  await writeFile(path, good().bytes);
  const [backing] = await load(path);
  await appendFile(backing!, "x");
  await truncate(backing!, megabyte);
  await writeFile(backing!, "changed");
  const [again] = await load(path);
  expect(again).toBe(backing);
  expect(await readFile(again!)).toEqual(good().contents.get("layer-0")!);
});

testHere("a file from the web is downloaded once, if it has the checksum", async () => {
  const requests: string[] = [];
  using server = serveOnLoopback(({ url }) => {
    requests.push(url);
    return url.includes("missing") ? new Response("", { status: 404 }) : new Response(good().bytes);
  });
  const url = `${server.url.href}cluster.zst?token=secret-of-the-url`;
  const other = await failureOf(loadFrom({ location: { url }, sha256: "0".repeat(64) }));
  expect(other).toMatchObject({
    id: damaged,
    message: expect.stringMatching(/cluster\.zst\?\*\*\* has the SHA-256 checksum/),
  });
  const missing = loadFrom({
    location: { url: `${server.url.href}missing` },
    sha256: "1".repeat(64),
  });
  expect(await failureOf(missing)).toMatchObject({
    id: damaged,
    message: expect.stringContaining("HTTP 404"),
  });
  expect(await left()).toEqual([]);
  const before = requests.length;
  const sum = sha256(good().bytes);
  for (let times = 0; times < 2; times += 1)
    expect((await loadFrom({ location: { url }, sha256: sum }))[1]).toBe("raw");
  expect(requests.length - before).toBe(1);
  const path = join(folder(), "local.zst");
  await writeFile(path, good().bytes);
  expect((await loadFrom({ location: { path, shown: path }, sha256: sum }))[1]).toBe("raw");
  expect(
    await failureOf(loadFrom({ location: { path, shown: path }, sha256: "0".repeat(64) })),
  ).toMatchObject({
    id: damaged,
  });
});
