/**
 * Writes the README's reference of commands, options and error ids from their declarations.
 * Usage: bun run scripts/reference.ts [--check]     --check: writes nothing; exit code 1 if the README is stale
 */
import { join } from "node:path";
import { cloudDriver } from "../src/bin/cloud-driver.ts";
import type { Command, Program } from "../src/cli/command.ts";
import { argumentLabel, defaultTextOf, flagWithPlaceholder, unsaidChoices, usageOf } from "../src/cli/describe.ts";
import type { Option } from "../src/cli/option.ts";
import { programFor } from "../src/commands/program.ts";
import { errorTable } from "../src/errors.ts";

const root = join(import.meta.dir, "..");
const readme = join(root, "README.md");
const begin = "<!-- reference: written by scripts/reference.ts -->";
const end = "<!-- end of the reference -->";

function commandReference(program: Program, command: Command): string {
  const positionals = Object.values(command.positionals).map((each) => `- \`${argumentLabel(each)}\`: ${each.summary}`);
  const options = Object.values(command.options).map(optionRow);
  return [
    `### ${command.name}`,
    `\`${usageOf(program, command)}\``,
    `${command.summary}. ${command.description}`.trim(),
    positionals.join("\n"),
    table(["Option", "Meaning", "Default"], options),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function optionRow(option: Option): readonly string[] {
  const short = option.short === undefined ? "" : `\`${option.short}\`, `;
  const notes = [
    ...(option.required === true ? ["required"] : []),
    ...(option.repeatable === true ? ["repeatable"] : []),
    ...(option.environment === undefined ? [] : [`from \`${option.environment}\``]),
  ];
  const choices = unsaidChoices(option);
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
  const program = programFor(cloudDriver);
  const ids = Object.entries(errorTable).map(([id, { exitCode, summary }]) => [`\`${id}\``, String(exitCode), summary]);
  return [
    ...program.commands.map((command) => commandReference(program, command)),
    "### Error ids",
    "Every error ends with its id in square brackets; `--output json` has it as `error.id`.",
    table(["Id", "Exit code", "Meaning"], ids),
  ].join("\n\n");
}

/** The text as the repository's formatter leaves it, so that formatting and this script never disagree. */
async function formatted(text: string): Promise<string> {
  const oxfmt = join(root, "node_modules", ".bin", "oxfmt");
  const child = Bun.spawn([process.execPath, "--bun", oxfmt, "--stdin-filepath", readme], {
    cwd: root,
    stdin: new Blob([text]),
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("oxfmt could not format the reference");
  return output;
}

async function main(): Promise<void> {
  const before = await Bun.file(readme).text();
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`README.md lacks the lines "${begin}" and "${end}"`);
  const after = await formatted(`${before.slice(0, from)}${begin}\n\n${reference()}\n\n${before.slice(to)}`);
  if (after === before) return;
  if (process.argv.includes("--check")) {
    console.error("README.md: the reference is stale. Run: bun run scripts/reference.ts");
    process.exitCode = 1;
  } else {
    await Bun.write(readme, after);
    console.log("README.md: reference written");
  }
}

await main();
