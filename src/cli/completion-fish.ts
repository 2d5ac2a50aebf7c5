import type { CompletedCommand, CompletedOption, CompletionModel, Source } from "./completion-model.ts";

export function fishCompletion(model: CompletionModel): string {
  const { program } = model;
  const top = `-n __fish_use_subcommand`;
  const lines = [
    `# fish completion of ${program}: source this file, or put it into ~/.config/fish/completions`,
    `complete -c ${program} -f`,
    ...model.options.map((option) => optionLine(program, top, option)),
    ...model.commands.map((each) => `complete -c ${program} ${top} -a ${quoted(each.name)} -d ${quoted(each.summary)}`),
    ...model.commands.flatMap((command) => commandLines(program, command)),
  ];
  return `${lines.join("\n")}\n`;
}

function commandLines(program: string, command: CompletedCommand): readonly string[] {
  const condition = `-n ${quoted(`__fish_seen_subcommand_from ${command.name}`)}`;
  const positionals = command.positionals.map((source) => sourceWords(program, source)).filter((each) => each !== "");
  return [
    ...command.options.map((option) => optionLine(program, condition, option)),
    ...positionals.map((words) => `complete -c ${program} ${condition} ${words}`),
  ];
}

function optionLine(program: string, condition: string, option: CompletedOption): string {
  const flags = option.flags.map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  // -x: nothing else is offered, while -r also lists the files that lie around.
  const required = option.value?.from === "files" ? " -r" : " -x";
  const value = option.value === undefined ? "" : `${required} ${sourceWords(program, option.value)}`;
  return `complete -c ${program} ${condition} ${flags.join(" ")}${value.trimEnd()} -d ${quoted(option.summary)}`;
}

function sourceWords(program: string, source: Source): string {
  switch (source.from) {
    case "words":
      return `-a ${quoted(source.words.join(" "))}`;
    case "program":
      return `-a ${quoted(`(${[program, ...source.words].join(" ")} 2>/dev/null)`)}`;
    case "files":
      return "-F";
    case "directories":
      return "-a '(__fish_complete_directories)'";
    case "nowhere":
      return "";
  }
}

const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
