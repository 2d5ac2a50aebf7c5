import { counted, option } from "./option.ts";
import type { Option } from "./option.ts";
import { choice } from "./value-types.ts";

/** cli/main reads this option to decide how much to print. Declare it under the name `verbose`. */
export const verbose = counted({
  flag: "--verbose",
  short: "-v",
  summary: "Print more: -v adds steps and timings, -vv API calls and remote commands, -vvv remote output",
});

/** cli/main reads this option to decide the format of results and errors. Declare it under the name `output`. */
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
