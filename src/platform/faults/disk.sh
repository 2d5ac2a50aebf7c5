#!/bin/sh
# A fault: fills the file system of a folder, also for root. systemd runs it as root, in front of fault-unit.sh. If the
# machine loses its power meanwhile, systemd-tmpfiles removes the file at the next boot, before services start.
# Values: ID; FILL, the folder; LEAVE, how many bytes stay free; SHARED, empty if the node has a disk and memory of its
# own, or else how many nodes fill those of one computer. Prints why it cannot begin.

file=$FILL/.cluster-e2e-fault-$ID
opened=/proc/self/fd/9
rule=/etc/tmpfiles.d/cluster-e2e-fault-$ID.conf

begin() {
  [ -d "$FILL" ] || fail "it has no folder $FILL"
  [ -z "$SHARED" ] || [ "$(stat -f -c %T "$FILL")" = tmpfs ] ||
    fail "$FILL is on the disk of the computer that runs the container, which would be full as well. Mount a tmpfs with a size there, or use virtual machines"
  [ -z "$SHARED" ] || fits ||
    fail "$FILL is in the memory of the computer that runs the container, and would take more than half of what is left there. Mount a smaller tmpfs, such as one with -o size=16m"
  for other in "${rule%/*}"/cluster-e2e-fault-*.conf; do
    other=$(sed -n 's|^r! \(/.*/\.cluster-e2e-fault-[0-9a-f]*\)$|\1|p' "$other" 2>/dev/null)
    # Its end would empty the file system for both.
    [ ! -e "$other" ] || [ "$(stat -c %d "$other")" != "$(stat -c %d "$FILL")" ] ||
      fail "the file system of $FILL is filled by another fault already"
  done
  [ "$(spare)" -ge 0 ] || fail "$FILL has only $(free_bytes) bytes free"
  mkdir -p "${rule%/*}"
  { printf 'r! %s\n' "$file" "$rule" >"$rule" && sync "$rule"; } || fail "$rule cannot be written"
  # Opened once, as a new file: the folder may be a service's, which could put a link in its place at any time.
  umask 077
  set -C
  command exec 9>"$file" || fail "no file can be created in $FILL"
  set +C
  fill
  # A file system without fallocate.
  [ -s "$opened" ] || [ "$(spare)" -lt 4096 ] || head -c "$(spare)" /dev/zero >&9 2>/dev/null || :
}

heal() { rm -f "$file" "$rule"; }

# The bytes that root can still write.
measure() { printf 'free=%s\n' "$(($(stat -f -c '%f * %S' "$FILL" 2>/dev/null || echo 0)))"; }

# As root sees it: ext4 keeps a part of the disk for root.
free_bytes() { echo $(($(stat -f -c '%f * %S' "$FILL"))); }
spare() { echo $(($(free_bytes) - LEAVE)); }

# Twice what all nodes take, against what the computer has, in kilobytes. A tmpfs without a size, such as a container's
# /run, may take half of all memory.
fits() { [ "$(($(spare) * SHARED / 512))" -le "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" ]; }

# A file system needs some blocks for its own lists of blocks, so the last ones are taken in smaller steps. ext4 keeps what
# a failed call has allocated, and counts blocks as free that nobody gets.
fill() {
  step=$(spare)
  while [ "$step" -ge 4096 ]; do
    fallocate -o "$(allocated)" -l "$step" "$opened" 2>/dev/null || step=$((step / 2))
    left=$(spare)
    [ "$step" -le "$left" ] || step=$left
  done
}
allocated() { echo $(($(stat -L -c '%b * %B' "$opened"))); }
