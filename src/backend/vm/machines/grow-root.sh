#!/bin/sh
# Grows a root on a logical volume of LVM to the whole disk, which cloud-init does only for partitions. cloud-init runs
# it as root at every boot. Prints what LVM says.

root=$(findmnt -n -o SOURCE /)
[ "$(lsblk -n -d -o TYPE "$root" 2>/dev/null)" = lvm ] || exit 0
group=$(lvs --noheadings -o vg_name "$root" | tr -d ' ')
for volume in $(pvs --noheadings -o pv_name --select "vg_name=$group"); do
  part=$(readlink -f "/sys/class/block/$(basename "$(readlink -f "$volume")")")
  # It fails where the partition has its whole room already.
  [ ! -e "$part/partition" ] || growpart "/dev/$(basename "${part%/*}")" "$(cat "$part/partition")" || :
  pvresize "$volume"
done
[ "$(vgs --noheadings -o vg_free_count "$group" | tr -d ' ')" = 0 ] || lvextend --resizefs --extents +100%FREE "$root"
