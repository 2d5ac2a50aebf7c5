/** The shells for which `completion` prints a script. */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** The hidden first word that the scripts pass to the program; completion-offer.ts answers it. */
export const completeWord = "__complete";

/**
 * Returns the script that completes this program's command lines in a shell. The script passes the words up to the cursor to the program and offers
 * its answer. The first line of the answer is `words`, `files` or `directories`. Each line after `words` is a candidate, optionally followed by a tab
 * and a description. If the word at the cursor is `--flag=value`, the candidates are values, and the script handles the `--flag=` part.
 */
export function completionScript(programName: string, shell: Shell): string {
  return scripts[shell].replaceAll("PROGRAM", programName).replaceAll("NAME", programName.replaceAll(/\W/g, "_"));
}

/** Also works in bash 3.2 (macOS), so it uses no associative arrays, `mapfile`, `compopt` or package of helper functions. */
const bash = `# bash completion for PROGRAM: source this file, or save it in bash's completions folder
_NAME() {
  local current="\${COMP_WORDS[COMP_CWORD]}" answer line
  COMPREPLY=()
  answer="$(PROGRAM __complete bash "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)"
  # bash splits words at "=" and ":", so only "va" of "--flag=va" is replaced.
  case "$current" in "=" | ":") current="" ;; esac
  case "$answer" in
    files) answer="$(compgen -f -- "$current")" ;;
    directories) answer="$(compgen -d -- "$current")" ;;
    *) answer="\${answer#words}" ;;
  esac
  # compgen -W would expand what the program prints, and others may have chosen those names.
  while IFS= read -r line; do
    line="\${line%%$'\\t'*}"
    if [ -n "$line" ] && [[ "$line" == "$current"* ]]; then COMPREPLY+=("$line"); fi
  done <<<"$answer"
}
complete -o filenames -o bashdefault -F _NAME PROGRAM
`;

const zsh = `#compdef PROGRAM
# zsh completion for PROGRAM: save this file as _PROGRAM in a folder of $fpath, or source it after compinit
_NAME() {
  local -a lines candidates
  lines=("\${(@f)$(PROGRAM __complete zsh "\${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
  compset -P '--*='
  case $lines[1] in
    files) _files ;;
    directories) _files -/ ;;
    words)
      shift lines
      candidates=("\${(@)\${(@)lines//:/\\\\:}/$'\\t'/:}")
      _describe -t values value candidates
      ;;
  esac
}

if [ "$funcstack[1]" = _NAME ]; then
  _NAME "$@"
else
  compdef _NAME PROGRAM
fi
`;

const fish = `# fish completion for PROGRAM: source this file, or save it in ~/.config/fish/completions
function __NAME_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' $words[-1])
    set -l value (string replace -r -- '^--[^=]*=' '' $words[-1])
    set -e words[1]
    set -l lines (PROGRAM __complete fish $words 2>/dev/null </dev/null)
    switch "$lines[1]"
        case files
            set lines (__fish_complete_path $value)
        case directories
            set lines (__fish_complete_directories $value)
        case '*'
            set -e lines[1]
    end
    test (count $lines) -gt 0; and printf '%s\\n' "$prefix"$lines
end
complete -c PROGRAM -f -a '(__NAME_complete)'
`;

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
