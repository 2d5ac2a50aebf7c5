import { shellQuoted } from "./completion-model.ts";
import type { CompletedCommand, CompletionModel, Source } from "./completion-model.ts";

/** Works in bash 3.2 (macOS) too: no associative arrays, no `mapfile`, no package of helper functions. */
export function bashCompletion(model: CompletionModel): string {
  const name = `_${model.program.replaceAll(/\W/g, "_")}`;
  const words = [...model.commands.map((command) => command.name), ...flagsOf(model.options)].join(" ");
  return `# bash completion of ${model.program}: source this file, or put it into bash's folder of completions
${name}_command() {
  case "$1" in
${model.commands.map(commandCase).join("\n")}
    *) return 1 ;;
  esac
}

${name}_values() {
  case "$1" in
${valueCases(model)}
  esac
}
${fixedParts(name, shellQuoted(words))}
complete -o filenames -o bashdefault -F ${name} ${model.program}
`;
}

const flagsOf = (options: CompletionModel["options"]): readonly string[] => options.flatMap((option) => option.flags);

/** Sets what the main function has declared as its own. */
function commandCase(command: CompletedCommand): string {
  const withValue = command.options.filter((option) => option.value !== undefined);
  const rest = command.hasRest ? "yes" : "";
  return `    ${command.name})
      options=${shellQuoted(flagsOf(command.options).join(" "))}
      takes_value=${shellQuoted(flagsOf(withValue).join(" "))}
      rest='${rest}' ;;`;
}

function valueCases(model: CompletionModel): string {
  const cases = model.commands.flatMap(({ name, options, positionals }) => {
    const ofOptions = options.map(({ flags, value }) => ({ keys: flags, source: value }));
    const ofPositionals = positionals.map((source, index) => ({ keys: [String(index)], source }));
    return [...ofOptions, ...ofPositionals].map(({ keys, source }) =>
      valueCase(model, { keys: keys.map((key) => `${name} ${key}`), source }),
    );
  });
  return cases.filter((each) => each !== "").join("\n") || "    *) ;;";
}

function valueCase(
  model: CompletionModel,
  { keys, source }: { readonly keys: readonly string[]; readonly source: Source | undefined },
): string {
  const action = source === undefined ? "" : valueAction(model, source);
  return action === "" ? "" : `    ${keys.map(shellQuoted).join(" | ")}) ${action} ;;`;
}

function valueAction(model: CompletionModel, source: Source): string {
  switch (source.from) {
    case "words":
      return `compgen -W ${shellQuoted(source.words.join(" "))} -- "$2"`;
    case "program":
      // Not through compgen, which would expand what the program prints: a name may be anybody's.
      return `${[model.program, ...source.words].map(shellQuoted).join(" ")} 2>/dev/null </dev/null`;
    case "files":
      return 'compgen -f -- "$2"';
    case "directories":
      return 'compgen -d -- "$2"';
    case "nowhere":
      return "";
  }
}

const fixedParts = (name: string, words: string): string => `
${name}_reply() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [ -n "$line" ] && [[ "$line" == "$1"* ]]; then COMPREPLY+=("$line"); fi
  done
}

${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" last="\${COMP_WORDS[COMP_CWORD-1]}" command="" previous=""
  local index=1 positionals=0 word options="" takes_value="" rest=""
  # bash breaks words at "=": "--flag=va" comes as three.
  if [ "$current" = "=" ]; then
    current=""
    previous="$last"
  elif [ "$last" = "=" ]; then
    previous="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  while [ "$index" -lt "$COMP_CWORD" ]; do
    word="\${COMP_WORDS[index]}"
    if [ -z "$command" ]; then
      command="$word"
      ${name}_command "$command" || return 0
    elif [[ "$word" == -?* && " $takes_value " == *" $word "* ]]; then
      index=$((index + 1))
      [ "\${COMP_WORDS[index]}" != "=" ] || index=$((index + 1))
      [ "$index" -lt "$COMP_CWORD" ] || previous="$word"
    elif [[ "$word" != -?* && "$word" != "=" ]]; then
      # What follows is another program's command line.
      [ -z "$rest" ] || return 0
      positionals=$((positionals + 1))
    fi
    index=$((index + 1))
  done
  if [ -z "$command" ]; then
    ${name}_reply "$current" < <(compgen -W ${words} -- "$current")
  elif [ -n "$previous" ]; then
    ${name}_reply "$current" < <(${name}_values "$command $previous" "$current")
  elif [[ "$current" == -* ]]; then
    ${name}_reply "$current" < <(compgen -W "$options" -- "$current")
  else
    ${name}_reply "$current" < <(${name}_values "$command $positionals" "$current")
  fi
}
`;
