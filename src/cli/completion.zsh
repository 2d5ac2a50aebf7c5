#compdef PROGRAM
# zsh completion for PROGRAM: save this file as _PROGRAM in a folder of $fpath, or source it after compinit
_NAME() {
  local -a lines candidates
  lines=("${(@f)$(PROGRAM __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
  compset -P '--*='
  case $lines[1] in
    files) _files ;;
    directories) _files -/ ;;
    words)
      shift lines
      candidates=("${(@)${(@)lines//:/\\:}/$'\t'/:}")
      _describe -t values value candidates
      ;;
  esac
}

# zsh loads the file as a function of its name when it is first needed.
if [ "$funcstack[1]" = _PROGRAM ]; then
  _NAME "$@"
else
  compdef _NAME PROGRAM
fi
