#!/bin/sh
# Runs a session's script with run-sealed.sh, in bash if the node has it. The login shell runs this. Prints nothing.
# Arguments: see run-sealed.sh.
# Values: SUDO, words to run it as another user, may be empty; RUN_SEALED, the text.

b='sh'
! command -v bash >/dev/null || b='bash'
# shellcheck disable=SC2086 # words
exec $SUDO "$b" -c "$RUN_SEALED" cluster-e2e "$1" "$2"
