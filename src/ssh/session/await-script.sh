#!/bin/sh
# shellcheck disable=SC2154 # session-folder.sh sets d
# For a session with a terminal: stdin belongs to the user, so the script comes over another connection, opened at the
# same time, into a folder that is created here and that nobody else can write to. The folder's name is visible on the
# node, so another user could create it first; in that case the session ends. The login shell runs this, with
# session-folder.sh before it and begin-session.sh behind it. Prints a line on stderr if no script comes. Its argument
# is the session's token.

u=$(umask)
umask 077
choose_folder "$1"
mkdir -- "$d" || exit 255
trap 'rm -rf -- "$d"; echo "The command did not reach the node" >&2' EXIT
trap 'exit 255' HUP INT TERM
wait_until -e "$d/script"
trap - EXIT HUP INT TERM
umask "$u"
set -- "$1" "$d"
