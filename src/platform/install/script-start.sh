#!/bin/sh
# The start of the scripts of this folder, which run on a node as root: `sh -s -- NAME ARGUMENTS` with the text on
# stdin. Behind the script's own text, main is called with the arguments. Prints lines "now: …" on stdout, and
# "failed: …" on stderr.

set -eu
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
now() { printf 'now: %s\n' "$*"; }
# Seconds since the machine's boot, because its clock may be set at any time.
uptime_now() {
  read -r uptime _ </proc/uptime
  echo "${uptime%.*}"
}
fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}
