#!/bin/sh
# shellcheck disable=SC2154 # session-folder.sh sets d
# Puts a session's script, which comes on stdin, where await-script.sh waits for it. Runs as the login user, behind
# session-folder.sh; prints nothing. Its argument is the session's token. It writes only into a folder that belongs to
# this user.

umask 077
set -eC
choose_folder "$1"
wait_until -d "$d"
# The folder's real name must match: a link in its place, made by another user, could lead to another folder of this user.
# shellcheck disable=SC3067 # dash has -O
cd -P -- "$d" && [ -O . ] && [ "$(basename -- "$PWD")" = "$1" ] && cat >part && mv -- part script
