import { shellQuoted } from "./completion-model.ts";
import type { CompletedCommand, CompletedOption, CompletionModel, Source } from "./completion-model.ts";

export function zshCompletion(model: CompletionModel): string {
  const name = `_${model.program.replaceAll(/\W/g, "_")}`;
  const commands = model.commands.map((command) => `    ${shellQuoted(`${command.name}:${command.summary}`)}`);
  return `#compdef ${model.program}
# zsh completion of ${model.program}: put this file as _${model.program} into a folder of $fpath, or source it after compinit

${liveFunctions(model, name)}${name}() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands
  commands=(
${commands.join("\n")}
  )
  _arguments -C \\
${model.options
  .flatMap((option) => optionSpecs(option, name))
  .map((spec) => `    ${spec} \\\n`)
  .join("")}    '1:command:->command' \\
    '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $words[1] in
${model.commands.map((command) => commandCase(command, name)).join("\n")}
      esac
      ;;
  esac
}

if [ "$funcstack[1]" = ${shellQuoted(name)} ]; then
  ${name} "$@"
else
  compdef ${name} ${model.program}
fi
`;
}

function commandCase(command: CompletedCommand, name: string): string {
  const specs = [
    ...command.options.flatMap((option) => optionSpecs(option, name)),
    ...command.positionals.map((source, index) => positionalSpec(command, source, { index, name })),
  ];
  return `        ${command.name})
          _arguments -s ${command.hasRest ? "-A '-*' " : ""}\\
${specs.map((spec) => `            ${spec}`).join(" \\\n")}
          ;;`;
}

function positionalSpec(
  command: CompletedCommand,
  source: Source,
  { index, name }: { readonly index: number; readonly name: string },
): string {
  // A program's own completion takes over where its words begin.
  if (command.hasRest && index === command.positionals.length - 1) return "'*::command: _normal'";
  return shellQuoted(`${index + 1}:argument:${action(source, name)}`);
}

function optionSpecs(option: CompletedOption, name: string): readonly string[] {
  const exclusive = option.isRepeatable ? "*" : `(${option.flags.join(" ")})`;
  const summary = option.summary.replaceAll(/[[\]\\]/g, String.raw`\$&`).replaceAll(":", String.raw`\:`);
  return option.flags.map((flag) => {
    const isLong = flag.startsWith("--");
    if (option.value === undefined) return shellQuoted(`${exclusive}${flag}[${summary}]`);
    return shellQuoted(`${exclusive}${flag}${isLong ? "=" : "+"}[${summary}]:value:${action(option.value, name)}`);
  });
}

function action(source: Source, name: string): string {
  switch (source.from) {
    case "words":
      return `(${source.words.join(" ")})`;
    case "program":
      return liveName(name, source.words);
    case "files":
      return "_files";
    case "directories":
      return "_files -/";
    case "nowhere":
      return " ";
  }
}

const liveName = (name: string, words: readonly string[]): string => `${name}_${words.join("_").replaceAll(/\W/g, "")}`;

function liveFunctions(model: CompletionModel, name: string): string {
  const sources = model.commands.flatMap((command) => [
    ...command.positionals,
    ...command.options.flatMap((option) => option.value ?? []),
  ]);
  const live = new Map(
    sources.flatMap((source) =>
      source.from === "program" ? [[liveName(name, source.words), source.words] as const] : [],
    ),
  );
  return [...live]
    .map(([called, words]) => {
      const call = [model.program, ...words].map(shellQuoted).join(" ");
      return `${called}() {\n  local -a values\n  values=(\${(f)"$(${call} 2>/dev/null)"})\n  compadd -a values\n}\n\n`;
    })
    .join("");
}
