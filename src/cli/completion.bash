# bash completion for PROGRAM: source this file, or save it in bash's completions folder
_NAME() {
  local current="${COMP_WORDS[COMP_CWORD]}" answer line
  COMPREPLY=()
  answer="$(PROGRAM __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)"
  # bash splits words at "=" and ":", so only "va" of "--flag=va" is replaced.
  case "$current" in "=" | ":") current="" ;; esac
  case "$answer" in
    files) answer="$(compgen -f -- "$current")" ;;
    directories) answer="$(compgen -d -- "$current")" ;;
    *) answer="${answer#words}" ;;
  esac
  # compgen -W would expand what the program prints, and others may have chosen those names.
  while IFS= read -r line; do
    line="${line%%$'\t'*}"
    if [ -n "$line" ] && [[ "$line" == "$current"* ]]; then COMPREPLY+=("$line"); fi
  done <<<"$answer"
}
complete -o filenames -o bashdefault -F _NAME PROGRAM
