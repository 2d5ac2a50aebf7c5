import type { Command, Program } from "../command.ts";
import { columns, wrap } from "../layout.ts";
import { flag, type Argument, type Option, replacementOf } from "../options/option.ts";

/** The text that the program prints for `--help`, and without arguments. */
export function programHelp(program: Program, width: number): string {
  const commands = program.commands.map((command): [string, string] => [
    command.name,
    command.summary,
  ]);
  const options = [versionOption, licensesOption, helpOption].map((each): [string, string] => [
    optionLabel(each),
    each.summary,
  ]);
  return paragraphs([
    [`Usage: ${program.name} [OPTIONS] COMMAND [ARGS]...`],
    wrap(program.summary, width),
    ["Commands:", ...columns(commands, width)],
    ["Options:", ...columns(options, width)],
    wrap(`Run "${program.name} COMMAND --help" for more about a command.`, width),
  ]);
}

export function commandHelp(program: Program, command: Command, width: number): string {
  const positionals = describeArguments(command);
  const options = [
    ...describeOptions(command),
    [optionLabel(helpOption), helpOption.summary] as const,
  ];
  const examples = command.examples.flatMap(({ words, summary }) => [
    ...wrap(summary, width - 4).map((line) => `  # ${line}`),
    `  ${program.name} ${words}`,
  ]);
  return paragraphs([
    [`Usage: ${usageOf(program, command)}`],
    wrap(command.summary, width),
    flow(command.description, width),
    positionals.length === 0 ? [] : ["Arguments:", ...columns(positionals, width)],
    ["Options:", ...columns(options, width)],
    examples.length === 0 ? [] : ["Examples:", ...examples],
  ]);
}

/** Empty lines separate paragraphs; other line breaks are spaces. */
const flow = (text: string, width: number): readonly string[] =>
  text.split("\n\n").flatMap((paragraph, index) => {
    const words = paragraph.split(/\s+/).filter((word) => word !== "");
    const lines = wrap(words.join(" "), width);
    return index === 0 ? lines : ["", ...lines];
  });

function paragraphs(parts: readonly (readonly string[])[]): string {
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join("\n")}\n`)
    .join("\n");
}

/** The data for the head and foot of the page, such as title and source. */
interface Edition {
  readonly version: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
}

/** A section at the end of a manual page, such as FILES. */
export interface ManualSection {
  readonly title: string;
  readonly entries: readonly (readonly [label: string, text: string])[];
}

/** The program's manual page in section 1, as roff with the `man` macros (`man ./cluster-cloud.1`). */
export function manualPage(
  program: Program,
  edition: Edition,
  sections: readonly ManualSection[] = [],
): string {
  const title = program.name.toUpperCase();
  return [
    `.TH ${quoted(title)} 1 ${quoted(edition.date)} ${quoted(`${program.name} ${edition.version}`)}`,
    ".SH NAME",
    `${escaped(program.name)} \\- ${escaped(program.summary)}`,
    ".SH SYNOPSIS",
    `.B ${escaped(program.name)}`,
    "[OPTIONS] COMMAND [ARGS]...",
    ".SH OPTIONS",
    ...[helpOption, versionOption, licensesOption].flatMap((each) =>
      entry(optionLabel(each).trim(), each.summary),
    ),
    ".SH COMMANDS",
    ...program.commands.flatMap((command) => commandEntry(program, command)),
    ...sections.flatMap((section) => [
      `.SH ${quoted(section.title)}`,
      ...section.entries.flatMap(([label, text]) => entry(label, text)),
    ]),
    "",
  ].join("\n");
}

function commandEntry(program: Program, command: Command): readonly string[] {
  return [
    `.SS ${quoted(command.name)}`,
    `.B ${escaped(usageOf(program, command))}`,
    ".PP",
    `${escaped(command.summary)}.`,
    ...manualParagraphs(command.description),
    ...[...describeArguments(command), ...describeOptions(command)].flatMap(([label, text]) =>
      entry(label.trim(), text),
    ),
    ...command.examples.flatMap(({ words, summary }) => [
      ".PP",
      `${escaped(summary)}:`,
      ".PP",
      ".nf",
      `.RS 4\n${escaped(`${program.name} ${words}`)}\n.RE`,
      ".fi",
    ]),
  ];
}

const entry = (label: string, text: string): readonly string[] => [
  ".TP",
  `.B ${escaped(label)}`,
  escaped(text),
];

function manualParagraphs(text: string): readonly string[] {
  const parts = text.split(/\n[^\S\n]*\n/).filter((part) => part.trim() !== "");
  return parts.flatMap((part) => [".PP", escaped(part.replaceAll(/\s+/g, " ").trim())]);
}

/**
 * Escapes text so that roff prints it literally: a dash stays a dash that can be copied, and no
 * line is read as a request.
 */
function escaped(text: string): string {
  return text
    .replaceAll("\\", String.raw`\e`)
    .replaceAll("-", String.raw`\-`)
    .replaceAll(/^[.']/gm, String.raw`\&$&`);
}

const quoted = (text: string): string => `"${escaped(text).replaceAll('"', '""')}"`;

export const helpOption = flag({ flag: "--help", short: "-h", summary: "Show this help" });

export const versionOption = flag({ flag: "--version", summary: "Print the version" });

export const licensesOption = flag({
  flag: "--licenses",
  summary: "Print the licenses of all included software",
});

/** `cluster-cloud create [OPTIONS] ARTIFACT_URL` */
export function usageOf(program: Program, command: Command): string {
  return [program.name, command.name, "[OPTIONS]", ...argumentLabels(command)].join(" ");
}

/** `ARTIFACT_URL`, `[CHECKOUT_DIR]`, `NODE_ARGS...` */
function argumentLabels(command: Command): readonly string[] {
  return Object.entries(command.positionals).map(([key, argument]) => {
    const name = argument.rest !== undefined ? `${argument.name}...` : argument.name;
    return argument.required === true && replacementOf(command, key) === undefined
      ? name
      : `[${name}]`;
  });
}

type Entry = [label: string, text: string];

export function describeArguments(command: Command): Entry[] {
  const labels = argumentLabels(command);
  return Object.entries(command.positionals).map(([name, each], index) => [
    labels[index] ?? each.name,
    describe(command, name, each),
  ]);
}

/** Without `--help`. */
function describeOptions(command: Command): Entry[] {
  return Object.entries(command.options).map(([name, each]) => [
    optionLabel(each),
    describe(command, name, each),
  ]);
}

/** `-c, --cluster-id <cluster_id>`; an option without a short form is indented to line up with the others. */
function optionLabel(option: Option): string {
  const short = option.short === undefined ? "    " : `${option.short}, `;
  return `${short}${flagWithPlaceholder(option)}`;
}

/** `--cluster-id <cluster_id>` */
export function flagWithPlaceholder(option: Option): string {
  const { kind, flag: name, placeholder = `<${name.slice(2).replaceAll("-", "_")}>` } = option;
  return kind === "value" ? `${name} ${placeholder}` : name;
}

/** The summary with notes: `Variant of the platform (oss, enterprise) (required)`. */
function describe(command: Command, name: string, declared: Option | Argument): string {
  const { environment, summary } = declared;
  const choices = undescribedChoices(declared);
  const fallback = defaultTextOf(declared);
  const isOption = "flag" in declared;
  const notes = [
    ...(choices.length === 0 ? [] : [choices.join(", ")]),
    ...requiredNotes(declared, replacementOf(command, name)),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(environment === undefined ? [] : [`environment: ${environment}`]),
    ...(isOption && declared.kind === "value" && declared.repeatable === true
      ? ["repeatable"]
      : []),
  ];
  return summary + notes.map((note) => ` (${note})`).join("");
}

function requiredNotes(
  declared: Option | Argument,
  replacement: Option | undefined,
): readonly string[] {
  if (declared.required !== true) return [];
  if (replacement !== undefined) return [`required without ${replacement.flag}`];
  return "flag" in declared ? ["required"] : [];
}

/** The accepted texts, unless the summary or placeholder already lists all of them. */
export function undescribedChoices(declared: Option | Argument): readonly string[] {
  const choices = declared.type.choices ?? [];
  const described = `${declared.summary} ${"placeholder" in declared ? (declared.placeholder ?? "") : ""}`;
  return choices.every((choice) => described.includes(choice)) ? [] : choices;
}

/** The default as the help shows it; undefined if there is none to show. */
export function defaultTextOf(declared: Option | Argument): string | undefined {
  if (declared.defaultText !== undefined) return declared.defaultText;
  const fallback = declared.default;
  return typeof fallback === "string" || typeof fallback === "number"
    ? String(fallback)
    : undefined;
}
