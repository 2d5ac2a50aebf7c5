/**
 * Writes the reference of commands, options and error ids in src/commands/README.md from their declarations.
 * Usage: bun run scripts/reference.ts [--check]     --check: writes nothing; exit code 1 if the page is stale
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
} from "../src/cli/help/describe.ts";
import type { Option } from "../src/cli/options/option.ts";
import { programFor } from "../src/commands/program.ts";
import { errorTable } from "../src/errors.ts";

const programs: readonly Program[] = [programFor(cloudKind), programFor(containerKind), programFor(vmKind)];
const root = join(import.meta.dir, "..");
const page = join("src", "commands", "README.md");
const path = join(root, page);
const begin = "<!-- reference: written by scripts/reference.ts -->";
const end = "<!-- end of the reference -->";

/** Describes a command once, however many programs have it, and marks what only some of them have. */
function commandReference(name: string): string {
  const having = programs.flatMap((program) => {
    const command = program.commands.find((candidate) => candidate.name === name);
    return command === undefined ? [] : [{ program, command }];
  });
  const [first] = having;
  if (first === undefined) throw new Error(`no program has the command ${name}`);
  const only = (owners: readonly string[]): string => (owners.length === having.length ? "" : owners.join(", "));
  const descriptions = byText(having, ({ command }) => [`${command.summary}. ${command.description}`.trim()]);
  const rows = byText(having, ({ command }) =>
    Object.values(command.options).map((each) => optionRow(each).join("\t")),
  );
  return [
    `### ${name}`,
    having.map(({ program, command }) => `\`${usageOf(program, command)}\``).join(having.length > 1 ? "\\\n" : ""),
    descriptions.map(({ text, owners }) => (only(owners) === "" ? text : `**${only(owners)}**: ${text}`)).join("\n\n"),
    describeArguments(first.command)
      .map(([label, text]) => `- \`${label}\`: ${text}`)
      .join("\n"),
    rows.length === 0
      ? ""
      : table(
          ["Option", "Meaning", "Default"],
          rows.map(({ text, owners }) => {
            const [flag = "", meaning = "", usual = ""] = text.split("\t");
            return [flag, only(owners) === "" ? meaning : `${meaning}; \`${only(owners)}\` only`, usual];
          }),
        ),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

interface Having {
  readonly program: Program;
  readonly command: Command;
}

/** Returns each text once, in order of first appearance, with the names of the programs that have it. */
function byText(
  having: readonly Having[],
  textsOf: (each: Having) => readonly string[],
): readonly { readonly text: string; readonly owners: readonly string[] }[] {
  const owners = new Map<string, string[]>();
  for (const each of having) {
    for (const text of textsOf(each)) owners.set(text, [...(owners.get(text) ?? []), each.program.name]);
  }
  return [...owners].map(([text, names]) => ({ text, owners: names }));
}

function optionRow(option: Option): readonly string[] {
  const short = option.short === undefined ? "" : `\`${option.short}\`, `;
  const notes = [
    ...(option.required === true ? ["required"] : []),
    ...(option.repeatable === true ? ["repeatable"] : []),
    ...(option.environment === undefined ? [] : [`from \`${option.environment}\``]),
  ];
  const choices = undescribedChoices(option);
  const summary = option.summary.replace(/(<[a-z_]+>_?)+/g, "`$&`");
  const meaning = `${summary}${choices.length === 0 ? "" : `: ${choices.map((choice) => `\`${choice}\``).join(", ")}`}`;
  return [
    `${short}\`${flagWithPlaceholder(option)}\``,
    `${meaning}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`,
    defaultTextOf(option) ?? "",
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function reference(): string {
  const names = new Set(programs.flatMap((program) => program.commands.map((command) => command.name)));
  const ids = Object.entries(errorTable).map(([id, { exitCode, summary }]) => [`\`${id}\``, String(exitCode), summary]);
  return [
    ...[...names].map(commandReference),
    "### Error ids",
    "Every error ends with its id in square brackets; `--output json` has it as `error.id`.",
    table(["Id", "Exit code", "Meaning"], ids),
  ].join("\n\n");
}

/** Formats the text like the repository's formatter, so that formatting and this script never disagree. */
async function formatted(text: string): Promise<string> {
  const oxfmt = join(root, "node_modules", ".bin", "oxfmt");
  const child = Bun.spawn([process.execPath, "--bun", oxfmt, "--stdin-filepath", path], {
    cwd: root,
    stdin: new Blob([text]),
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("oxfmt could not format the reference");
  return output;
}

async function main(): Promise<void> {
  const before = await Bun.file(path).text();
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} must contain the lines "${begin}" and "${end}"`);
  const after = await formatted(`${before.slice(0, from)}${begin}\n\n${reference()}\n\n${before.slice(to)}`);
  if (after === before) return;
  if (process.argv.includes("--check")) {
    console.error(`${page}: the reference is stale. Run: bun run scripts/reference.ts`);
    process.exitCode = 1;
  } else {
    await Bun.write(path, after);
    console.log(`${page}: reference written`);
  }
}

await main();
