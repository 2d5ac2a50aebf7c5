#!/bin/sh
# A fault: fills the file system of a folder, also for root. systemd runs it as root, in front of fault-unit.sh. If the
# machine loses its power meanwhile, systemd-tmpfiles removes the file at the next boot, before services start.
# Values: ID; FILL, the folder; LEAVE, how many bytes stay free; SHARED, not empty if the node's disk is that of another
# computer. Prints why it cannot begin.

file=$FILL/.cluster-e2e-fault-$ID
rule=/etc/tmpfiles.d/cluster-e2e-fault-$ID.conf

begin() {
  [ -d "$FILL" ] || fail "it has no folder $FILL"
  [ -z "$SHARED" ] || [ "$(stat -f -c %T "$FILL")" = tmpfs ] ||
    fail "$FILL is on the disk of the computer that runs the container, which would be full as well. Mount a tmpfs with a size there, or use virtual machines"
  [ "$(spare)" -ge 0 ] || fail "$FILL has only $(free_bytes) bytes free"
  mkdir -p "${rule%/*}"
  { printf 'r! %s\n' "$file" "$rule" >"$rule" && sync "$rule"; } || fail "$rule cannot be written"
  (umask 077 && : >"$file") || fail "no file can be created in $FILL"
  fill
  # A file system without fallocate.
  [ -s "$file" ] || [ "$(spare)" -lt 4096 ] || head -c "$(spare)" /dev/zero >"$file" 2>/dev/null || :
}

heal() { rm -f "$file" "$rule"; }

# As root sees it: ext4 keeps a part of the disk for root.
free_bytes() { echo $(($(stat -f -c '%f * %S' "$FILL"))); }
spare() { echo $(($(free_bytes) - LEAVE)); }

# A file system needs some blocks for its own lists of blocks, so the last ones are taken in smaller steps.
fill() {
  size=0
  step=$(spare)
  while [ "$step" -ge 4096 ]; do
    if fallocate -o "$size" -l "$step" "$file" 2>/dev/null; then
      size=$((size + step))
      step=$(spare)
    else
      step=$((step / 2))
    fi
  done
}
