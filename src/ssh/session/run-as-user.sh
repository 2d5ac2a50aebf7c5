#!/bin/sh
# Runs a user's command as another user of the node; a session's script starts it as root. Prints a line on stderr if
# there is no such user, and exits with 255 then, or if the user has no home directory or may not run commands.
# Arguments: the user's name; `home` to run in the home directory, otherwise an empty text; the words of the command, of
# which a single one is a shell line.

name=$1
folder=$2
shift 2
entry=$(getent passwd "$name")
# For digits, getent also finds a user's id, with which runuser would fail like the command.
case $name in *[!0-9]*) ;; "${entry%%:*}") ;; *) entry= ;; esac
[ -n "$entry" ] || {
  echo "There is no user $name on this node." >&2
  exit 255
}
USER=$name LOGNAME=$name SHELL=${entry##*:}
home=${entry%:*}
HOME=${home##*:}
if ! [ -d "$HOME" ]; then
  echo "The user $name has no home directory: $HOME does not exist on this node. HOME is / instead." >&2
  HOME=/
fi
export USER LOGNAME SHELL HOME
unset MAIL
[ -z "$folder" ] || cd "$HOME" || exit 255
if [ "$#" -eq 1 ]; then
  shell='sh'
  ! command -v bash >/dev/null || shell='bash'
  set -- "$shell" -c "$1"
fi
# Its own status for a refusal, such as that of an expired account, could be the command's.
runuser --user "$name" -- true </dev/null || exit 255
# Otherwise runuser sets HOME to the directory that is missing.
exec runuser --preserve-environment --user "$name" -- "$@"
