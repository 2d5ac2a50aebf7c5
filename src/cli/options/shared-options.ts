import { counted, option } from "./option.ts";
import type { Option } from "./option.ts";
import { choice } from "./value-types.ts";

/** The option that cli/main reads to know how much to tell. Declare it under the name `verbose`. */
export const verbose = counted({
  flag: "--verbose",
  short: "-v",
  summary: "Print more: -v adds steps and timings, -vv API calls and remote commands, -vvv remote output",
});

/** The option that cli/main reads to know how results and errors are written. Declare it under the name `output`. */
export function outputFormat<const Format extends string>(
  formats: readonly ["text", ...Format[]],
): Option<"text" | Format> {
  return option(choice<"text" | Format>(formats), {
    flag: "--output",
    placeholder: `<${formats.join("|")}>`,
    summary: "Format of the result on stdout",
    default: "text",
  });
}
