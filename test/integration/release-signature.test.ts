/** Executables for macOS, made here: their signatures are looked at byte by byte, since no Mac is at hand. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../scripts/build.ts";
import { baseExecutable } from "../../scripts/release/base-executables.ts";
import { signatureFaults, signedAdHoc } from "../../scripts/release/code-signature.ts";
import { platforms } from "../../scripts/release/platforms.ts";

const root = join(import.meta.dir, "..", "..");
const built = new Map<string, Buffer>();

async function build(name: string): Promise<Buffer> {
  const platform = platforms.find((each) => each.name === name)!;
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-test-"));
  try {
    const base = await baseExecutable(platform, root, folder);
    await Bun.write(join(folder, "hello.ts"), 'console.log("hello");\n');
    const outfile = join(folder, "hello");
    await compile({
      source: join(folder, "hello.ts"),
      outfile,
      version: "0",
      platform: { target: platform.target, base },
    });
    return await readFile(outfile);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const from = (name: string): Buffer => Buffer.from(built.get(name)!);

describe("a signature inside a macOS executable", () => {
  beforeAll(async () => {
    for (const name of ["darwin-arm64", "darwin-x64"]) built.set(name, await build(name));
  }, 120_000);

  test("is for ARM, as Bun made it, right, and the very one that we make", () => {
    const file = from("darwin-arm64");
    expect(signatureFaults(file)).toEqual([]);
    expect(signedAdHoc(file).equals(file)).toBe(true);
  });

  test("is for Intel, as Bun leaves it, that of Bun itself and wrong; ours is right", () => {
    const file = from("darwin-x64");
    // Once this finds nothing, Bun signs for Intel too, and scripts/release/executables.ts need not any more.
    expect(signatureFaults(file)).not.toEqual([]);
    const signed = signedAdHoc(file);
    expect(signatureFaults(signed)).toEqual([]);
    expect(signedAdHoc(signed).equals(signed)).toBe(true);
  });

  test.each([
    ["one bit of the code", (file: Buffer) => flip(file, 123_456), /1 of \d+ page hashes wrong, the first of page 30/],
    ["a byte more at the end", (file: Buffer) => Buffer.concat([file, Buffer.from("x")]), /bytes after its signature/],
  ])("is found wrong with %s", (_, change, fault) => {
    expect(signatureFaults(change(from("darwin-arm64"))).join("\n")).toMatch(fault);
  });

  test("is not looked for in other files", () => {
    expect(() => signatureFaults(Buffer.from("#!/bin/sh\n".repeat(9)))).toThrow("is no 64-bit Mach-O file");
    expect(() => signatureFaults(from("darwin-arm64").subarray(0, 1_000_000))).toThrow(
      "ends before its signature does",
    );
  });
});

function flip(file: Buffer, at: number): Buffer {
  file[at] = file[at]! ^ 1;
  return file;
}
