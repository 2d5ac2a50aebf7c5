import { platform } from "node:os";
import type { FFIFunction, Library } from "bun:ffi";

/** Possible locations of the C library: glibc and musl on Linux, then macOS. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  linux: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"],
  darwin: ["libSystem.B.dylib"],
};

/**
 * Returns functions of the C library; undefined if it can't be found. Takes about 0.7 ms, most of
 * it for bun:ffi, when it is called first.
 *
 * Callers import this file lazily, or stay apart from what the library for Node imports: Node has no bun:ffi.
 */
export async function loadFunctions<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Promise<Library<Functions>["symbols"] | undefined> {
  const { dlopen } = await import("bun:ffi");
  for (const library of libraries[platform()] ?? []) {
    try {
      return dlopen(library, functions).symbols;
    } catch {
      // The library belongs to another system: try the next one.
    }
  }
  return undefined;
}
