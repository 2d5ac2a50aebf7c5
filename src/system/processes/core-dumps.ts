import { loadFunctions } from "./load-functions.ts";

/** RLIMIT_CORE; it has the same number on Linux and macOS. */
const coreSize = 4;

/**
 * Keeps a crash of this process or its children from writing memory with secrets to disk. Returns
 * whether that worked. The limit is one byte rather than zero: if a program collects dumps
 * (`core_pattern` begins with `|`), Linux ignores any other limit.
 * https://man7.org/linux/man-pages/man5/core.5.html
 *
 * Neither Bun nor Node has another way to set a limit.
 */
export async function disableCoreDumps(): Promise<boolean> {
  const limitFunction = { args: ["i32", "ptr"], returns: "i32" } as const;
  const system = await loadFunctions({ getrlimit: limitFunction, setrlimit: limitFunction });
  // struct rlimit: the current limit and the maximum.
  const limits = new BigUint64Array(2);
  if (system === undefined || system.getrlimit(coreSize, limits) !== 0) return false;
  const [, most = 0n] = limits;
  limits[0] = most < 1n ? most : 1n;
  return system.setrlimit(coreSize, limits) === 0;
}
