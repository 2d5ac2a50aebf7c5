#!/bin/sh
# Copies what an engine's image of a node lacks: files that its engine hides in a container of the snapshot, and extended
# attributes and holes, for which the node needs python3. The engine runs it in the node, as root with -e, shortly before
# it is saved. Prints a line if it could not save these, or "long PATH" if a path has more bytes than MOST: then it does no
# more. Arguments: the volumes' paths.
# Values: STATE, where start-system.sh finds them; DETAILS, the text of file-details.py; MOST.

long=$(find / "$@" -xdev -print0 2>/dev/null | tr '\n\0' '?\n' | LC_ALL=C awk -v most="$MOST" 'length > most' | head -n 1)
[ -z "$long" ] || { printf 'long %s\n' "$long" && exit; }

cd /etc || exit
rm -rf "$STATE/saved"
mkdir -p "$STATE/saved"
for name in hosts hostname resolv.conf; do
  [ ! -e "$name" ] || cp -a "$name" "$STATE/saved"
done
# Shows, in a container of the snapshot, that it is another one.
awk '$5 == "/" { print $4, $NF }' /proc/self/mountinfo >"$STATE/saved/layer"
printf '%s\n' "$DETAILS" >"$STATE/saved/details.py"
if command -v python3 >/dev/null; then
  python3 "$STATE/saved/details.py" save "$STATE/saved/details"
else
  echo 'no python3'
fi
