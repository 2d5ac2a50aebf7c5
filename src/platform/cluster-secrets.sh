#!/bin/sh
# Prints the files that hold the cluster's secrets, with frame.sh. Runs as root on the first master.
# Values: FILES, lines of a name and a path; LISTS, files with lines of further paths, MOST_LISTED of them, which are
# named listed-0 and so on; MOST_BYTES of each file. The text "unmasked" has a line for each file that is there and that
# cannot be masked: "unreadable PATH", or "long PATH", of which only those in FILES are printed.

# read_secret NAME PATH
read_secret() {
  missing='No such file or directory$|Not a directory$'
  ! LC_ALL=C stat -L -- "$2" 2>&1 | grep -qE "$missing" || return 0
  size=$(read_file "$2" wc -c)
  if [ "${size:-0}" -gt "$MOST_BYTES" ]; then
    echo "long $2" >&5
    case $1 in listed-*) return 0 ;; esac
  fi
  { read_file "$2" head -c "$MOST_BYTES" || echo "unreadable $2" >&5; } | frame "$1"
}

read_secrets() {
  printf '%s\n' "$FILES" | while read -r name path; do
    read_secret "$name" "$path"
  done
  number=0
  # shellcheck disable=SC2086 # one word per list
  for list in $LISTS; do read_file "$list" cat; done | head -n "$MOST_LISTED" | while read -r path; do
    read_secret "listed-$number" "$path"
    number=$((number + 1))
  done
}

{ unmasked=$(read_secrets 5>&1 >&4); } 4>&1
printf '%s\n' "$unmasked" | frame unmasked
exit 0
