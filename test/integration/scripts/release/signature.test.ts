/** Checks the signatures of executables for macOS byte by byte, because there is no Mac. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../../../scripts/build.ts";
import { baseExecutable } from "../../../../scripts/release/base-executables.ts";
import {
  isSignedByKey,
  signatureFaults,
  signedAdHoc,
} from "../../../../scripts/release/code-signature.ts";
import { platforms } from "../../../../scripts/release/platforms.ts";

const root = join(import.meta.dir, "..", "..", "..", "..");
const names = ["darwin-arm64", "darwin-x64"] as const;
const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-test-"));
afterAll(async () => rm(folder, { recursive: true, force: true }));
const bases = await Promise.all(names.map(async (name) => base(name))).catch(() => undefined);
const lack =
  bases === undefined ? "Bun for macOS cannot be had from the package registry here" : undefined;
const built = new Map<string, Buffer>();

async function base(name: string): Promise<string> {
  const inside = join(folder, name);
  await mkdir(inside);
  return baseExecutable(
    platforms.find((each) => each.name === name)!,
    root,
    inside,
  );
}

async function build(name: string, path: string): Promise<Buffer> {
  const { target } = platforms.find((each) => each.name === name)!;
  const source = join(folder, name, "hello.ts");
  await Bun.write(source, 'console.log("hello");\n');
  const outfile = join(folder, name, "hello");
  await compile({ source, outfile, version: "0", platform: { target, base: path } });
  return readFile(outfile);
}

const from = (name: string): Buffer => Buffer.from(built.get(name)!);

describe.skipIf(lack !== undefined)(
  `a signature inside a macOS executable (${lack ?? "made here"})`,
  () => {
    beforeAll(async () => {
      for (const [index, name] of names.entries())
        built.set(name, await build(name, bases![index]!));
    });

    test("for ARM, as Bun creates it, is correct and identical to ours", () => {
      const file = from("darwin-arm64");
      expect(signatureFaults(file)).toEqual([]);
      expect(isSignedByKey(file)).toBe(false);
      expect(signedAdHoc(file).equals(file)).toBe(true);
    });

    test("for Intel, as Bun leaves it, is that of Bun itself and wrong; ours is correct", () => {
      const file = from("darwin-x64");
      // When this fails, Bun signs for Intel too, and scripts/release/executables.ts no longer needs to.
      expect(signatureFaults(file)).not.toEqual([]);
      expect(isSignedByKey(file)).toBe(true);
      const signed = signedAdHoc(file);
      expect(signatureFaults(signed)).toEqual([]);
      expect(isSignedByKey(signed)).toBe(false);
      expect(signedAdHoc(signed).equals(signed)).toBe(true);
    });

    test.each([
      [
        "one bit of the code",
        (file: Buffer) => flip(file, 123_456),
        /1 of \d+ page hashes wrong, the first for page 30/,
      ],
      [
        "a byte more at the end",
        (file: Buffer) => Buffer.concat([file, Buffer.from("x")]),
        /bytes after its signature/,
      ],
    ])("is wrong with %s", (_, change, fault) => {
      expect(signatureFaults(change(from("darwin-arm64"))).join("\n")).toMatch(fault);
    });

    test("is correct in Bun itself, and its page hashes detect a copy that changed after its download", async () => {
      for (const path of bases!)
        expect([path, signatureFaults(await readFile(path))]).toEqual([path, []]);
    });

    test("is not expected in other files", () => {
      expect(() => signatureFaults(Buffer.from("#!/bin/sh\n".repeat(9)))).toThrow(
        "is not a 64-bit Mach-O file",
      );
      expect(() => signatureFaults(from("darwin-arm64").subarray(0, 1_000_000))).toThrow(
        "ends before its signature does",
      );
    });
  },
);

function flip(file: Buffer, at: number): Buffer {
  file[at] = file[at]! ^ 1;
  return file;
}
