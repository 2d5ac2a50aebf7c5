#!/bin/sh
# Functions for scripts that print texts of a node; see node-logs.ts. Run as root. frame NAME prints its stdin as one
# line. read_file PATH COMMAND… runs the command with the file as its stdin. It fails without a message for anything but
# a regular file, and for one that a process without root's rights may have put in another one's place, by a symbolic
# or a hard link.

frame() {
  printf '%s ' "$1"
  base64 | tr -d '\n'
  echo
}

# only_root_changes FOLDER: whether nobody but root can change the entries of the folder
only_root_changes() {
  # shellcheck disable=SC2046 # three words
  set -- $(stat -c '%u %g %a' -- "$1" 2>/dev/null)
  case "$1:$2:$3" in
    0:*:*[2367]) return 1 ;;
    0:0:*) return 0 ;;
    0:*:*[2367]?) return 1 ;;
    0:*) return 0 ;;
    *) return 1 ;;
  esac
}

# location PATH: prints where the file is if only root's links lead to it, after "root" if nobody but root can have put
# it there
location() {
  rest=$1 here=/ links=0 by=root
  while rest=${rest#/} && [ -n "$rest" ]; do
    if ! only_root_changes "$here"; then
      here=${here%/}/$rest by=others
      break
    fi
    name=${rest%%/*}
    rest=${rest#"$name"}
    case $name in
      . | '') continue ;;
      ..)
        here=$(dirname -- "$here")
        continue
        ;;
    esac
    if [ -L "${here%/}/$name" ]; then
      links=$((links + 1))
      [ "$links" -le 40 ] || return 1
      target=$(readlink -- "${here%/}/$name")
      rest=$target$rest
      case $target in /*) here=/ ;; esac
    else
      here=${here%/}/$name
    fi
  done
  printf '%s %s\n' "$by" "$here"
}

read_file() (
  [ -f "$1" ] && found=$(location "$1") && exec 3<"$1" || exit 1
  shift
  # What is open stays the same file, whatever happens to its name. The kernel knows where it is.
  [ -f /proc/self/fd/3 ] && [ "$(readlink /proc/self/fd/3)" = "${found#* }" ] || exit 1
  [ "${found%% *}" = root ] || [ "$(stat -L -c %h /proc/self/fd/3)" = 1 ] || exit 1
  exec "$@" <&3
) 2>/dev/null
