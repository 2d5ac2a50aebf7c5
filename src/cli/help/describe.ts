import type { Command, Program } from "../command.ts";
import { flag } from "../options/option.ts";
import type { Argument, Option } from "../options/option.ts";

/** Every command and the program itself have this option. */
export const helpOption = flag({ flag: "--help", short: "-h", summary: "Show this help" });

/** The program has this option in addition to `--help`. */
export const versionOption = flag({ flag: "--version", summary: "Print the version" });

export const licensesOption = flag({
  flag: "--licenses",
  summary: "Print the licenses of all included software",
});

/** `cluster-cloud create [OPTIONS] ARTIFACT_URL` */
export function usageOf(program: Program, command: Command): string {
  return [program.name, command.name, "[OPTIONS]", ...Object.values(command.positionals).map(argumentLabel)].join(" ");
}

/** `ARTIFACT_URL`, `[CHECKOUT_DIR]`, `NODE_ARGS...` */
export function argumentLabel(argument: Argument): string {
  const name = argument.rest ? `${argument.name}...` : argument.name;
  return argument.required === true ? name : `[${name}]`;
}

/** `-c, --cluster-id <cluster_id>`; an option without a short form is indented to line up with the others. */
export function optionLabel(option: Option): string {
  const short = option.short === undefined ? "    " : `${option.short}, `;
  return `${short}${flagWithPlaceholder(option)}`;
}

/** `--cluster-id <cluster_id>` */
export function flagWithPlaceholder(option: Option): string {
  return option.kind === "value" ? `${option.flag} ${placeholderOf(option)}` : option.flag;
}

function placeholderOf(option: Option): string {
  return option.placeholder ?? `<${option.flag.slice(2).replaceAll("-", "_")}>`;
}

/** Notes to add to a summary: ` (oss, enterprise) (required)`. */
export function notesOf(declared: Option | Argument): string {
  const { environment } = declared;
  const choices = undescribedChoices(declared);
  const fallback = defaultTextOf(declared);
  const isOption = "flag" in declared;
  const notes = [
    ...(choices.length === 0 ? [] : [choices.join(", ")]),
    ...(isOption && declared.required === true ? ["required"] : []),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(environment === undefined ? [] : [`environment: ${environment}`]),
    ...(isOption && declared.kind === "value" && declared.repeatable === true ? ["repeatable"] : []),
  ];
  return notes.map((note) => ` (${note})`).join("");
}

/** The accepted texts, unless the summary or placeholder already lists all of them. */
export function undescribedChoices(declared: Option | Argument): readonly string[] {
  const choices = declared.type.choices ?? [];
  const said = `${declared.summary} ${"placeholder" in declared ? (declared.placeholder ?? "") : ""}`;
  return choices.every((choice) => said.includes(choice)) ? [] : choices;
}

/** The default as the help shows it; undefined if there is none to show. */
export function defaultTextOf(declared: Option | Argument): string | undefined {
  if (declared.defaultText !== undefined) return declared.defaultText;
  const fallback = declared.default;
  return typeof fallback === "string" || typeof fallback === "number" ? String(fallback) : undefined;
}
