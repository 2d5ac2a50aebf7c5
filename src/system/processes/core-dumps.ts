import { platform } from "node:os";

/** Possible locations of the C library: glibc and musl on Linux, then macOS. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  linux: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"],
  darwin: ["libSystem.B.dylib"],
};

/** RLIMIT_CORE; it has the same number on Linux and macOS. */
const coreSize = 4;

/**
 * Keeps a crash of this process or its children from writing memory with secrets to disk. Returns whether that worked. The limit is one byte rather
 * than zero: if a program collects dumps (`core_pattern` begins with `|`), Linux ignores any other limit.
 * https://man7.org/linux/man-pages/man5/core.5.html
 *
 * Apart from run-program.ts, which the library for Node imports: Node has no bun:ffi.
 *
 * Takes about 0.7 ms, most of it for bun:ffi. Neither Bun nor Node has another way to set a limit.
 */
export async function disableCoreDumps(): Promise<boolean> {
  const { dlopen } = await import("bun:ffi");
  const limitFunction = { args: ["i32", "ptr"], returns: "i32" } as const;
  for (const library of libraries[platform()] ?? []) {
    try {
      const { symbols } = dlopen(library, { getrlimit: limitFunction, setrlimit: limitFunction });
      // struct rlimit: the current limit and the maximum.
      const limits = new BigUint64Array(2);
      if (symbols.getrlimit(coreSize, limits) !== 0) return false;
      const [, most = 0n] = limits;
      limits[0] = most < 1n ? most : 1n;
      return symbols.setrlimit(coreSize, limits) === 0;
    } catch {
      // The library belongs to another system: try the next one.
    }
  }
  return false;
}
