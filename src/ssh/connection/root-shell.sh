#!/bin/sh
# Runs one shell line after another, each in a session of its own. Runs as root, in the shells of old distributions too,
# for as long as its stdin is open. For each line, stdin has the sizes in bytes of the line and of the line's own stdin,
# and then both. The second size is "-" where the line's stdin comes later, as lines up to one that is the token. A line
# that was cut off on its way is not run. Prints what the lines print. On both streams it prints a mark with the last
# line's status once it waits for the next line; see node-marks.ts. A line is over when no process holds its output any
# more. Its argument is a token, with which each line ends.

command -v setsid >/dev/null || exit 127
# Without stderr, because a shell reports a signal that ends a command with its own source text.
exec 3>&1 4>&2 2>/dev/null
token=$1
pass_stdin() {
  case $1 in
    0) ;;
    -)
      # What the line no longer reads must not be left to the next.
      trap '' PIPE
      while IFS= read -r word && [ "$word" != "$token" ]; do printf '%s\n' "$word"; done
      ;;
    *) dd bs="$1" count=1 iflag=fullblock ;;
  esac
}
s=0
while
  printf '\036%s\n' "$1 over $s" >&3
  printf '\036%s\n' "$1 over $s" >&4
  read -r size input
do
  line=$(dd bs="$size" count=1 iflag=fullblock)
  case $line in *"# $1") ;; *) exit 1 ;; esac
  s=$(
    {
      {
        {
          pass_stdin "$input" 3>&- 4>&- 5>&- 6>&- |
            setsid sh -c "$line" 2>&6 3>&- 4>&- 5>&- 6>&-
          echo "$?" >&5
        } | cat >&3 4>&- 5>&- 6>&-
      } 6>&1 | cat >&4 3>&- 5>&-
    } 5>&1
  )
done
