import type { Command, Program } from "../command.ts";
import { flag, type Argument, type Option, replacementOf } from "../options/option.ts";

/** Every command and the program itself have this option. */
export const helpOption = flag({ flag: "--help", short: "-h", summary: "Show this help" });

/** The program has this option in addition to `--help`. */
export const versionOption = flag({ flag: "--version", summary: "Print the version" });

export const licensesOption = flag({ flag: "--licenses", summary: "Print the licenses of all included software" });

/** `cluster-cloud create [OPTIONS] ARTIFACT_URL` */
export function usageOf(program: Program, command: Command): string {
  return [program.name, command.name, "[OPTIONS]", ...argumentLabels(command)].join(" ");
}

/** `ARTIFACT_URL`, `[CHECKOUT_DIR]`, `NODE_ARGS...` */
function argumentLabels(command: Command): readonly string[] {
  return Object.entries(command.positionals).map(([key, argument]) => {
    const name = argument.rest !== undefined ? `${argument.name}...` : argument.name;
    return argument.required === true && replacementOf(command, key) === undefined ? name : `[${name}]`;
  });
}

/** A label, and what the help says about it. */
type Entry = [label: string, text: string];

export function describeArguments(command: Command): Entry[] {
  const labels = argumentLabels(command);
  return Object.entries(command.positionals).map(([name, each], place) => [
    labels[place] ?? each.name,
    `${each.summary}${notesOf(each, replacementOf(command, name))}`,
  ]);
}

/** Without `--help`. */
export function describeOptions(command: Command): Entry[] {
  return Object.entries(command.options).map(([name, each]) => [
    optionLabel(each),
    `${each.summary}${notesOf(each, replacementOf(command, name))}`,
  ]);
}

/** `-c, --cluster-id <cluster_id>`; an option without a short form is indented to line up with the others. */
export function optionLabel(option: Option): string {
  const short = option.short === undefined ? "    " : `${option.short}, `;
  return `${short}${flagWithPlaceholder(option)}`;
}

/** `--cluster-id <cluster_id>` */
export function flagWithPlaceholder(option: Option): string {
  const { kind, flag: name, placeholder = `<${name.slice(2).replaceAll("-", "_")}>` } = option;
  return kind === "value" ? `${name} ${placeholder}` : name;
}

/** Notes to add to a summary: ` (oss, enterprise) (required)`. `replacement` is the option that makes this one unnecessary. */
function notesOf(declared: Option | Argument, replacement?: Option): string {
  const { environment } = declared;
  const choices = undescribedChoices(declared);
  const fallback = defaultTextOf(declared);
  const isOption = "flag" in declared;
  const notes = [
    ...(choices.length === 0 ? [] : [choices.join(", ")]),
    ...requiredNotes(declared, replacement),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(environment === undefined ? [] : [`environment: ${environment}`]),
    ...(isOption && declared.kind === "value" && declared.repeatable === true ? ["repeatable"] : []),
  ];
  return notes.map((note) => ` (${note})`).join("");
}

function requiredNotes(declared: Option | Argument, replacement: Option | undefined): readonly string[] {
  if (declared.required !== true) return [];
  if (replacement !== undefined) return [`required without ${replacement.flag}`];
  return "flag" in declared ? ["required"] : [];
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
