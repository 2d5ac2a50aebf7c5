#!/bin/sh
# Runs a session's script with run-sealed.sh, in bash if the node has it. The login shell runs this. With MARKS, it
# prints the mark of the command's end on stderr; see node-marks.ts.
# This shell stays the parent of the script's shell: if a signal ends that, it exits with 128 + the signal's number.
# Otherwise ssh would exit with 255, as after a lost connection. It outlives Ctrl-C, as the script's shell does. Only the
# subshell gets stderr, because a shell reports such a signal with its own source text.
# Arguments: see run-sealed.sh.
# Values: MARKS, empty for none; SUDO, words to run it as another user, may be empty; RUN_SEALED, the text.

b='sh'
! command -v bash >/dev/null || b='bash'
trap : INT QUIT
exec 3>&2 2>/dev/null
# shellcheck disable=SC2086 # words
(exec $SUDO "$b" -c "$RUN_SEALED" cluster-e2e "$1" "$2" 2>&3 3>&-)
s=$?
[ -z "$MARKS" ] ||
  printf '\036%s\n' "$1 end $s $(readlink "/proc/$$/fd/1") $(readlink "/proc/$$/fd/3")" >&3
exit "$s"
