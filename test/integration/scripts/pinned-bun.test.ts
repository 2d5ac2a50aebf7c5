/** scripts/pinned-bun, with a registry on loopback. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile } from "node:fs/promises";
import { arch, machine, platform, type } from "node:os";
import { join } from "node:path";
import { checkoutFiles } from "../../../scripts/checkout-files.ts";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const script = join(import.meta.dir, "..", "..", "..", "scripts", "pinned-bun");
const name = `bun-${platform()}-${arch() === "arm64" ? "aarch64" : "x64"}`;
const kernel = `${type()} ${machine()}`;
const state: {
  package?: Uint8Array;
  registry?: Bun.Server<undefined>;
  readonly requests: string[];
} = {
  requests: [],
};

beforeAll(async () => {
  const files = { "package/bin/bun": "#!/bin/sh\necho the pinned one\n", "package/README.md": "" };
  state.package = await new Bun.Archive(files, { compress: "gzip" }).bytes();
  state.registry = serveOnLoopback(({ url }) => {
    state.requests.push(new URL(url).pathname);
    return url.endsWith(".tgz") ? new Response(state.package) : new Response("", { status: 404 });
  });
});
afterAll(async () => state.registry?.stop(true));

/** A checkout whose lock file pins the package with this checksum. */
async function checkoutWith(checksum: string, ofMusl = "sha512-AAAA") {
  const folder = await scratchFolder();
  await mkdir(join(folder.path, "scripts"));
  await copyFile(script, join(folder.path, "scripts", "pinned-bun"));
  const facts = `{ "os": "${platform()}", "cpu": "${arch()}" }`;
  const musl = `    "@oven/${name}-musl": ["@oven/${name}-musl@9.9.9", "", ${facts}, "${ofMusl}"],`;
  const own = `    "@oven/${name}": ["@oven/${name}@1.2.3", "", ${facts}, "${checksum}"],`;
  await Bun.write(join(folder.path, "bun.lock"), `{\n  "packages": {\n${musl}\n${own}\n  }\n}\n`);
  return folder;
}

/** `lines` replace commands of the script. */
async function run(checksum: string, lines = "", ofMusl?: string) {
  const folder = await checkoutWith(checksum, ofMusl);
  const target = join(folder.path, "made");
  const line = `${lines}\n. "$0"`;
  const child = Bun.spawn(["sh", "-c", line, join(folder.path, "scripts", "pinned-bun"), target], {
    env: {
      PATH: process.env["PATH"] ?? "",
      npm_config_registry: `http://127.0.0.1:${state.registry!.port}/`,
    },
    stderr: "pipe",
  });
  const [status, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  return {
    status,
    stderr,
    target,
    [Symbol.asyncDispose]: async () => folder[Symbol.asyncDispose](),
  };
}

const checksumOf = (bytes: Uint8Array): string =>
  `sha512-${createHash("sha512").update(bytes).digest("base64")}`;

test("installs the Bun that the lock file pins, and nothing else", async () => {
  await using ran = await run(checksumOf(state.package!));
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: "" });
  expect(state.requests).toEqual([`/@oven/${name}/-/${name}-1.2.3.tgz`]);
  expect(await readdir(ran.target)).toEqual(["bun"]);
  expect(await readFile(join(ran.target, "bun"), "utf8")).toContain("the pinned one");
});

// Shows R12.
test("a package with a wrong checksum is rejected, and nothing of it is kept", async () => {
  await using ran = await run(checksumOf(Buffer.from("what was pinned")));
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain(`@oven/${name} 1.2.3 is not the one that bun.lock pins`);
  expect(await readdir(ran.target)).toEqual([]);
});

test("a Bun that doesn't run here, can't be unpacked or stalls on its way is refused with the reason", async () => {
  const checksum = checksumOf(state.package!);
  const chmod = `chmod() { printf '#!/bin/sh\\necho GLIBC_2.99 not found >&2; exit 1' >"$2"; command chmod "$@"; }`;
  await using strange = await run(checksum, chmod, checksum);
  expect(strange.stderr).toBe(
    `no Bun that bun.lock pins runs on this machine (${kernel}):
  @oven/${name}: GLIBC_2.99 not found
  @oven/${name}-musl: GLIBC_2.99 not found\n`,
  );
  await using full = await run(checksum, "tar() { return 2; }");
  expect(full.stderr).toContain(`cannot unpack @oven/${name} 1.2.3 in ${full.target}`);
  await using stalled = await run(checksum, 'curl() { echo "$*" >&2; return 28; }');
  expect(stalled.stderr).toContain("--connect-timeout 30 --speed-limit 1000 --speed-time 60");
  for (const { status, target } of [strange, full, stalled])
    expect([status, await readdir(target)]).toEqual([1, []]);
});

test.each(["HUP", "INT", "TERM"])("%s leaves nothing of what was downloaded", async (signal) => {
  await using ran = await run(checksumOf(state.package!), `curl() { kill -${signal} $$; }`);
  expect(ran.status).toBeGreaterThan(128);
  expect(await readdir(ran.target)).toEqual([]);
});

test("what builds something for the tests ends as orderly with its terminal as by a signal", async () => {
  const root = join(import.meta.dir, "..", "..", "..");
  const scripts = (await checkoutFiles(root)).filter((path) =>
    /^(?:scripts|test)\/[^.]+$/.test(path),
  );
  const texts = await Promise.all(
    scripts.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const),
  );
  const orderly = texts.filter(
    ([, text]) => text.startsWith("#!/bin/sh\n") && /^trap .* TERM\b/m.test(text),
  );
  expect(orderly.length).toBeGreaterThan(10);
  const others = orderly.filter(([, text]) => !/^trap '.*exit .* HUP$/m.test(text));
  expect(others.map(([path]) => path)).toEqual([]);
});

test("a lock file without a checksum is rejected", async () => {
  await using ran = await run("");
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain(`bun.lock does not pin @oven/${name}.`);
});

test("scripts/setup installs this Bun, without npm, and leaves nothing of one with a wrong checksum", async () => {
  const text = await Bun.file(join(script, "..", "setup")).text();
  await using folder = await scratchFolder();
  const install = /^install_bun\(\) \{\n.*?^\}\n/ms.exec(text)![0];
  const lines = `set -eu; say() { echo "$*" >&2; }; not_set_up() { say "$*"; exit 5; }\n${install}\ninstall_bun`;
  for (const [checksum, expected] of [
    [checksumOf(Buffer.from("another")), { status: 5, files: [] }],
    [checksumOf(state.package!), { status: 0, files: ["bun"] }],
  ] as const) {
    await using checkout = await checkoutWith(checksum);
    const target = join(folder.path, "bun");
    const child = Bun.spawn(["sh", "-c", lines], {
      env: {
        PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
        root: checkout.path,
        bun_version: "1.2.3",
        bun_folder: target,
        npm_config_registry: `http://127.0.0.1:${state.registry!.port}/`,
      },
      stderr: "ignore",
    });
    expect({ status: await child.exited, files: await readdir(target) }).toEqual({
      ...expected,
      files: [...expected.files],
    });
  }
});
