# bash completion for PROGRAM: source this file, or save it in bash's completions folder
_NAME() {
  local current="${COMP_WORDS[COMP_CWORD]}" answer line are_files=yes after_colon=
  COMPREPLY=()
  answer="$(PROGRAM __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)"
  # bash splits words at "=" and ":", so only "va" of "--flag=va" is replaced.
  if [ "$current" = ":" ] || [ "${COMP_WORDS[COMP_CWORD-1]}" = ":" ]; then after_colon=yes; fi
  case "$current" in "=" | ":") current="" ;; esac
  case "$answer" in
    files) answer="$(compgen -f -- "$current")" ;;
    directories) answer="$(compgen -d -- "$current")" ;;
    *) answer="${answer#words}" are_files="" ;;
  esac
  # Only names of files get a slash if there is a folder with that name. bash quotes them, but no other words.
  if [ -n "$are_files" ]; then compopt -o filenames 2>/dev/null; fi
  # compgen -W would expand what the program prints, and others may have chosen those names.
  while IFS= read -r line; do
    line="${line%%$'\t'*}"
    if [ -z "$are_files" ] && [ -n "$after_colon" ]; then line="${line#*:}"; fi
    if [ -z "$line" ] || [[ "$line" != "$current"* ]]; then continue; fi
    if [ -z "$are_files" ] && [ "${BASH_VERSINFO[0]}" -ge 4 ]; then line="$(printf '%q' "$line")"; fi
    COMPREPLY+=("$line")
  done <<<"$answer"
}
# bash 3.2 (macOS) has no compopt: there, all words are treated as names of files.
if [ "${BASH_VERSINFO[0]}" -ge 4 ]; then
  complete -o bashdefault -F _NAME PROGRAM
else
  complete -o filenames -o bashdefault -F _NAME PROGRAM
fi
