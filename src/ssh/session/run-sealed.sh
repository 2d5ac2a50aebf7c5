#!/bin/sh
# Reads a session's script and runs it in this shell, in the user's name or as root. It doesn't run a script that was
# cut off on its way. Prints a line on stderr then. Arguments: the session's token, which is also the script's last
# line; and the folder with the script, or the script's length in bytes if it comes on stdin. dd leaves the rest of
# stdin; in some implementations, head -c reads more. With MARKS, it first prints the mark that the command has begun
# on both streams; see node-marks.ts.
# Values: MARKS, empty for none.

case $2 in
  /*) s=$(cat "$2/script" && rm -rf -- "$2") ;;
  *) s=$(dd bs="$2" count=1 iflag=fullblock 2>/dev/null) ;;
esac
case $s in
  *"# $1")
    [ -z "$MARKS" ] || {
      printf '\036%s\n' "$1 begun"
      printf '\036%s\n' "$1 begun" >&2
    }
    eval "$s"
    ;;
esac
echo "The command did not reach the node completely" >&2
exit 255
