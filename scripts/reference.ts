/**
 * Writes src/commands/reference.md, the reference of commands, options and error ids, from their declarations. What several programs have in
 * common stands there once. A unit test fails if the page is stale.
 * Usage: bun run scripts/reference.ts
 */
import { join } from "node:path";
import { cloudKind } from "../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../src/backend/container/container-kind.ts";
import { vmKind } from "../src/backend/vm/vm-kind.ts";
import type { Command, Program } from "../src/cli/command.ts";
import {
  describeArguments,
  defaultTextOf,
  flagWithPlaceholder,
  undescribedChoices,
  usageOf,
} from "../src/cli/help/help.ts";
import type { Option } from "../src/cli/options/option.ts";
import { programFor } from "../src/commands/program.ts";
import { errorTable } from "../src/errors.ts";

const programs: readonly Program[] = [
  programFor(cloudKind),
  programFor(containerKind),
  programFor(vmKind),
];
const root = join(import.meta.dir, "..");
const page = join("src", "commands", "reference.md");
const path = join(root, page);

/** The programs that share something, as a heading names them. */
type Owners = string;
const everyone: Owners = "Every program";

/** A command, with each sentence and each option as its programs have it. */
interface Entry {
  readonly name: string;
  readonly owners: Owners;
  readonly usage: string;
  readonly sentences: readonly Owned[];
  readonly arguments: readonly Owned[];
  readonly options: readonly Owned[];
  readonly common: readonly string[];
}

interface Owned {
  readonly text: string;
  readonly owners: Owners;
}

interface Having {
  readonly program: Program;
  readonly command: Command;
}

const havingNamed = (name: string): readonly Having[] =>
  programs.flatMap((program) =>
    program.commands.filter((each) => each.name === name).map((command) => ({ program, command })),
  );

const names = [
  ...new Set(programs.flatMap((program) => program.commands.map((command) => command.name))),
];

/** The lines of options that at least half of some program's commands have, each with its short name and its programs. */
const commonOptions: ReadonlyMap<string, Owned & { readonly label: string }> = new Map(
  byText(
    programs.flatMap((program) => program.commands.map((command) => ({ program, command }))),
    (each) => optionLines(each.command),
  )
    .filter(({ text }) =>
      programs.some(
        ({ commands }) =>
          commands.filter((command) => optionLines(command).includes(text)).length * 2 >=
          commands.length,
      ),
    )
    .map((each) => [each.text, { ...each, label: `\`${/--?[a-z-]+/.exec(each.text)?.[0]}\`` }]),
);

const entries: readonly Entry[] = names.map((name) => {
  const having = havingNamed(name);
  // Some programs have more arguments than others.
  const [first] = having.toSorted((a, b) => argumentCount(b.command) - argumentCount(a.command));
  if (first === undefined) throw new Error(`no program has the command ${name}`);
  const lines = byText(having, ({ command }) => optionLines(command));
  return {
    name,
    owners: ownersText(having.map(({ program }) => program.name)),
    usage: usageOf(first.program, first.command).slice(first.program.name.length + 1),
    sentences: byText(having, ({ command }) =>
      sentencesOf(`${command.summary}. ${command.description}`),
    ),
    arguments: argumentsOf(having),
    options: lines.filter(({ text }) => !commonOptions.has(text)),
    common: lines.flatMap(({ text }) => commonOptions.get(text)?.label ?? []),
  };
});

/** Whether an argument is required may differ between programs: the first one's line stands for all with the same summary. */
function argumentsOf(having: readonly Having[]): readonly Owned[] {
  const described = having.flatMap(({ command }) => {
    const summaries = Object.values(command.positionals).map(({ summary }) => summary);
    return describeArguments(command).map(([label, text], index) => ({
      summary: summaries[index],
      line: `\`${label}\`: ${text}`,
    }));
  });
  const summaries = byText(having, ({ command }) =>
    Object.values(command.positionals).map(({ summary }) => summary),
  );
  return summaries.map(({ text, owners }) => ({
    text: described.find(({ summary }) => summary === text)?.line ?? text,
    owners,
  }));
}

function argumentCount({ positionals }: Command): number {
  return Object.keys(positionals).length;
}

function sentencesOf(text: string): readonly string[] {
  const paragraphs = text.trim().split("\n\n");
  return paragraphs.flatMap((paragraph) => paragraph.split(/(?<=[.)])\s+(?=[A-Z`])/));
}

/** Returns each text once, in order of first appearance, with the programs that have it. */
function byText(
  having: readonly Having[],
  textsOf: (each: Having) => readonly string[],
): readonly Owned[] {
  const owners = new Map<string, Set<string>>();
  for (const each of having) {
    for (const text of textsOf(each))
      owners.set(text, (owners.get(text) ?? new Set()).add(each.program.name));
  }
  return [...owners].map(([text, programNames]) => ({
    text,
    owners: ownersText([...programNames]),
  }));
}

function ownersText(owners: readonly string[]): Owners {
  return owners.length === programs.length
    ? everyone
    : owners.map((name) => `\`${name}\``).join(" and ");
}

function optionLines(command: Command): readonly string[] {
  return Object.values(command.options).map(optionLine);
}

function optionLine(option: Option): string {
  const short = option.short === undefined ? "" : `\`${option.short}\`, `;
  const choices = undescribedChoices(option);
  const fallback = defaultTextOf(option);
  const notes = [
    ...(choices.length === 0 ? [] : [choices.map((choice) => `\`${choice}\``).join(", ")]),
    ...(option.required === true ? ["required"] : []),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
    ...(option.environment === undefined ? [] : [`environment: \`${option.environment}\``]),
    ...(option.repeatable === true && !option.summary.includes("(repeatable)")
      ? ["repeatable"]
      : []),
  ];
  const summary = option.summary.replace(/(<[a-z_]+>_?)+/g, "`$&`");
  return `${short}\`${flagWithPlaceholder(option)}\`: ${summary}${notes.map((note) => ` (${note})`).join("")}`;
}

/** A command in the section of these programs: all of it if they are the ones that have it, otherwise options of their own; undefined if none. */
function section(entry: Entry, owners: Owners): string | undefined {
  const isHome = entry.owners === owners;
  const options = entry.options.filter((each) => each.owners === owners).map(({ text }) => text);
  if (!isHome) {
    if (options.length === 0) return undefined;
    return `### ${entry.name} with ${owners.replaceAll("`", "")}\n\n${list(options)}`;
  }
  const of = (wanted: Owners): string =>
    entry.sentences
      .filter((each) => each.owners === wanted)
      .map(({ text }) => text)
      .join(" ");
  const others = [...new Set(entry.sentences.map((each) => each.owners))].filter(
    (each) => each !== owners,
  );
  return [
    `### ${entry.name}`,
    `\`${entry.usage}\``,
    of(owners),
    ...others.map((each) => `${each}: ${of(each)}`),
    list([
      ...entry.arguments.map((each) =>
        each.owners === owners ? each.text : `${each.text}; ${each.owners} only`,
      ),
      ...options,
    ]),
    entry.common.length > 0 ? `[Common options](#common-options): ${entry.common.join(", ")}` : "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function list(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join("\n");
}

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heading), line(heading.map(() => "---")), ...rows.map(line)].join("\n");
}

function reference(): string {
  const owned = new Set(
    entries.flatMap((entry) => [entry, ...entry.options].map(({ owners }) => owners)),
  );
  const some = [...owned].filter((owners) => owners !== everyone);
  const groups = [
    everyone,
    ...some.toSorted((a, b) => b.split(" and ").length - a.split(" and ").length),
  ];
  const ids = Object.entries(errorTable).map(([id, { exitCode, summary }]) => [
    `\`${id}\``,
    String(exitCode),
    summary,
  ]);
  return [
    "<!-- Written by scripts/reference.ts -->",
    "# Reference",
    "What [every program](#every-program) has, then what only some of them have. `--help` of a program and of a command prints the same, with examples. [Commands](README.md) is the guide.",
    "## Common options",
    list(
      [...commonOptions.values()].map(({ text, owners }) =>
        owners === everyone ? text : `${text}; ${owners} only`,
      ),
    ),
    ...groups.flatMap((owners) => [
      `## ${owners === everyone ? owners : `Only ${owners.replaceAll("`", "")}`}`,
      ...entries.flatMap((entry) => section(entry, owners) ?? []),
    ]),
    "## Error ids",
    "Every error ends with its id in square brackets; `--output json` has it as `error.id`.",
    table(["Id", "Exit code", "Meaning"], ids),
  ].join("\n\n");
}

/** Formats the text of this file like the repository's formatter, so that formatting and these scripts never disagree. */
export async function formatted(file: string, text: string): Promise<string> {
  const oxfmt = join(root, "node_modules", ".bin", "oxfmt");
  const child = Bun.spawn([process.execPath, "--bun", oxfmt, "--stdin-filepath", file], {
    cwd: root,
    stdin: new Blob([text]),
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`oxfmt could not format ${file}`);
  return output;
}

/** The page as it should be. */
export const referencePage = async (): Promise<string> => formatted(path, `${reference()}\n`);

if (import.meta.main) await Bun.write(path, await referencePage());
