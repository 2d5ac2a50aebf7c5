/** Several processes unpack files with the same layers. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type LayerStore, storeLayer } from "../../../../../src/backend/vm/files/layers.ts";
import { imageFolder } from "../../../../../src/backend/vm/images/image-store.ts";
import { acquireProcessLock } from "../../../../../src/system/processes/process-identity.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";

async function* bytes(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(text);
}

const layerOf = (text: string) => ({
  layer: {
    format: "raw",
    bytes: text.length,
    sha256: createHash("sha256").update(text).digest("hex"),
    below: undefined,
  } as const,
  below: undefined,
});

function storeIn(folder: string): LayerStore & { readonly told: readonly string[] } {
  const environment = { XDG_CACHE_HOME: folder };
  const { progress, told } = recordingProgress();
  // Layers without others below need no QEMU.
  const qemu = {} as LayerStore["qemu"];
  const runtime = { clock: systemClock, environment, progress };
  return { qemu, folder: imageFolder(environment), runtime, shown: "cluster.zst", told };
}

test("while another process unpacks the same layer, it waits and says so", async () => {
  await using scratch = await scratchFolder();
  const store = storeIn(scratch.path);
  await mkdir(store.folder, { recursive: true });
  const wanted = layerOf("the same");
  const lock = join(store.folder, `own-${wanted.layer.sha256.slice(0, 16)}.img.lock`);
  const other = await acquireProcessLock(
    lock,
    { clock: systemClock, onWait: () => {} },
    neverAborted,
  );
  const stored = storeLayer(store, wanted, bytes("the same"), neverAborted);
  await until("it says so", async () => store.told.length > 0);
  expect(store.told).toEqual(["Waiting for another process that unpacks the same image."]);
  await other[Symbol.asyncDispose]();
  expect(await readFile((await stored).path, "utf8")).toBe("the same");
});

const code = `
const { storeLayer } = await import(process.argv[1]);
const { store, wanted } = JSON.parse(process.argv[2]);
const { systemClock: clock } = await import(process.argv[3]);
const { silentProgress: progress } = await import(process.argv[4]);
async function* chunks() {
  yield Buffer.from("begun");
  console.log("begun");
  await new Promise(() => setInterval(() => {}, 1000));
}
const runtime = { ...store.runtime, clock, progress };
await storeLayer({ ...store, runtime }, wanted, chunks(), new AbortController().signal);
`;

test("what a killed program had unpacked is removed by the next one that unpacks anything", async () => {
  await using scratch = await scratchFolder();
  const store = storeIn(scratch.path);
  const source = (path: string): string => join(import.meta.dir, "../../../../../src", path);
  const given = JSON.stringify({ store: { ...store, qemu: {} }, wanted: layerOf("another one") });
  const silence = join(import.meta.dir, "../../../../support/silent-progress.ts");
  const words = [source("backend/vm/files/layers.ts"), given, source("system/runtime.ts"), silence];
  const killed = Bun.spawn(["bun", "-e", code, ...words], { stdout: "pipe", stderr: "inherit" });
  await killed.stdout.getReader().read();
  killed.kill("SIGKILL");
  await killed.exited;
  expect(await readdir(store.folder)).toHaveLength(2);
  const { path } = await storeLayer(store, layerOf("this one"), bytes("this one"), neverAborted);
  expect(await readFile(path, "utf8")).toBe("this one");
  const left = await readdir(store.folder, { recursive: true });
  expect(left.filter((name) => !/\.img(?:\.verified)?$/.test(name))).toEqual([
    expect.stringMatching(/^own-[0-9a-f]{16}\.img\.lock$/),
  ]);
});
