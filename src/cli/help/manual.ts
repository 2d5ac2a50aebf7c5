import type { Command, Program } from "../command.ts";
import {
  describeArguments,
  describeOptions,
  helpOption,
  licensesOption,
  optionLabel,
  usageOf,
  versionOption,
} from "./describe.ts";

/** The data for the head and foot of the page, such as title and source. */
interface Edition {
  readonly version: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
}

/** The program's manual page in section 1, as roff with the `man` macros (`man ./cluster-cloud.1`). */
export function manualPage(program: Program, edition: Edition): string {
  const title = program.name.toUpperCase();
  return [
    `.TH ${quoted(title)} 1 ${quoted(edition.date)} ${quoted(`${program.name} ${edition.version}`)}`,
    ".SH NAME",
    `${escaped(program.name)} \\- ${escaped(program.summary)}`,
    ".SH SYNOPSIS",
    `.B ${escaped(program.name)}`,
    "[OPTIONS] COMMAND [ARGS]...",
    ".SH OPTIONS",
    ...[helpOption, versionOption, licensesOption].flatMap((each) => entry(optionLabel(each).trim(), each.summary)),
    ".SH COMMANDS",
    ...program.commands.flatMap((command) => commandEntry(program, command)),
    "",
  ].join("\n");
}

function commandEntry(program: Program, command: Command): readonly string[] {
  return [
    `.SS ${quoted(command.name)}`,
    `.B ${escaped(usageOf(program, command))}`,
    ".PP",
    `${escaped(command.summary)}.`,
    ...paragraphs(command.description),
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

const entry = (label: string, text: string): readonly string[] => [".TP", `.B ${escaped(label)}`, escaped(text)];

function paragraphs(text: string): readonly string[] {
  const parts = text.split(/\n[^\S\n]*\n/).filter((part) => part.trim() !== "");
  return parts.flatMap((part) => [".PP", escaped(part.replaceAll(/\s+/g, " ").trim())]);
}

/** Escapes text so that roff prints it literally: a dash stays a dash that can be copied, and no line is read as a request. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", String.raw`\e`)
    .replaceAll("-", String.raw`\-`)
    .replaceAll(/^[.']/gm, String.raw`\&$&`);
}

/** Quotes one argument of a request. */
const quoted = (text: string): string => `"${escaped(text).replaceAll('"', '""')}"`;
