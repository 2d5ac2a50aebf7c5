#!/bin/sh
# Prints the processes that can write to an open file, such as "python3 1234", one a line and at most five. Runs as root on a
# node. Arguments: the files as /proc shows them, such as "socket:[1234]".

find /proc/[0-9]*/fd -maxdepth 1 -type l -perm -200 -printf '%l %h\n' 2>/dev/null |
  while read -r file folder; do
    for each; do
      [ "$file" != "$each" ] || printf '%s\n' "${folder%/fd}"
    done
  done | sort -u | head -n 5 |
  while read -r process; do
    read -r name <"$process/comm" && printf '%s %s\n' "$name" "${process#/proc/}"
  done
