/**
 * Injects the faults into the built executables, and prints which ones they survive. Ctrl-C starts no further fault.
 *
 * Usage: bun run faults [--today] [--seconds N] [--list] [--output] [--at-once N] [NAME…]
 *   NAME      Only faults whose name contains it; default: all
 *   --today   Only the part of the day
 *   --seconds The size of the part of the day, in seconds of faults; default: 300
 *   --list    Print the names and inject nothing
 *   --output  Also print what the commands printed, for faults that were not survived
 */
import { parseArgs } from "node:util";
import { campaign } from "./campaign.ts";
import { playAll } from "./play-all.ts";
import { sliceOf, usualSliceSeconds } from "./slice.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    today: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    output: { type: "boolean", default: false },
    seconds: { type: "string", default: String(usualSliceSeconds) },
    "at-once": { type: "string", default: "4" },
  },
});
const named = campaign.filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
const day = new Date();
const chosen = values.today ? sliceOf(named, day, Number(values.seconds)) : named;
if (values.today)
  console.log(
    `The slice of ${day.toISOString().slice(0, 10)}: ${chosen.length} of ${named.length} faults`,
  );
if (chosen.length === 0) {
  console.error(`no fault is called ${positionals.join(" or ")}`);
  process.exitCode = 2;
} else if (values.list) {
  for (const { name, seconds } of chosen) console.log(`${name}  ${seconds} s`);
} else {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => stopping.abort());
  const atOnce = Number(values["at-once"]);
  const { survived, skipped } = await playAll(
    chosen,
    { atOnce, showsOutput: values.output, print: console.log },
    stopping.signal,
  );
  if (survived + skipped < chosen.length) process.exitCode = 1;
}
