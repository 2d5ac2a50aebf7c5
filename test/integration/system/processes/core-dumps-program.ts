/** Disables core dumps of its own process, and prints its limits. It is a separate program, because limits can't be raised again. */
import { disableCoreDumps } from "../../../../src/system/processes/core-dumps.ts";

console.log(await disableCoreDumps());
console.log(await Bun.file("/proc/self/limits").text());
