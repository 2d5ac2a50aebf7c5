import { BadValue } from "../../cli/options/option.ts";
import type { Ignored } from "../../cluster/watch/start-watch.ts";
import { quoted } from "../../errors.ts";
import { didYouMean, nearest } from "../../model/rule.ts";
import { oneOf } from "../../model/reader.ts";

const kinds = [
  "oom",
  "core-dump",
  "kernel-error",
  "failed-unit",
  "reboot",
  "clock-jump",
  "error-line",
  "watch",
  "all",
] as const satisfies readonly Ignored["kind"][];
const readKind = oneOf(...kinds);

/** Reads `failed-unit` or `failed-unit=cron.service`. */
export function readIgnored(given: string): Ignored {
  const end = given.indexOf("=");
  const kind = readKind(end < 0 ? given : given.slice(0, end));
  if (kind === undefined)
    throw new BadValue(
      `${quoted(given)} does not begin with one of ${kinds.join(", ")}${didYouMean(nearest(given, kinds))}`,
    );
  const pattern = end < 0 ? undefined : given.slice(end + 1);
  if (pattern === "") throw new BadValue(`${quoted(given)} has no text after "="`);
  return { kind, pattern };
}
