#!/bin/sh
# A fault: keeps processors busy, or fills memory, up to a share of what the node has. systemd runs it as root, in front
# of fault-unit.sh. What a container has is its limit; without one, it has none of its own.
# Values: ID; FOLDER; CPU and MEMORY, in thousandths, or 0; SHARED, empty if the node is a machine, or else how many
# containers of one computer have the fault. Prints why it cannot begin.

cgroups=/sys/fs/cgroup
paths=/proc/1/cgroup

begin() {
  [ "$CPU" -eq 0 ] || check_processors
  [ "$MEMORY" -eq 0 ] || fill_memory
}

heal() {
  [ -d "$FOLDER/$ID.memory" ] || return 0
  umount "$FOLDER/$ID.memory" 2>/dev/null || umount -l "$FOLDER/$ID.memory" 2>/dev/null
  rmdir "$FOLDER/$ID.memory"
}

# Percentages of the node's limits that its programs use. "computer" is how busy all processors of the computer are.
measure() {
  # shellcheck disable=SC2046 # two words each
  [ "$MEMORY" -eq 0 ] || print_memory $(memory)
  # shellcheck disable=SC2046
  [ "$CPU" -eq 0 ] || print_processors $(processors)
}

print_memory() { echo "memory=$(($(memory_used "${2:-}") * 100 / $1))"; }

print_processors() {
  began=$(hundredths) node=$(processors_used "${2:-}") computer=$(processors_used)
  sleep 1
  took=$(($(hundredths) - began))
  # Microseconds, and thousandths of processors.
  echo "cpu=$((($(processors_used "${2:-}") - node) * 10 / took / $1))"
  echo "computer=$((($(processors_used) - computer) / took / $(nproc) / 100))"
}

check_processors() {
  # shellcheck disable=SC2046
  set -- $(processors)
  [ -n "$SHARED" ] || return 0
  [ $# -eq 2 ] ||
    fail "it is a container without a CPU limit, and would take its computer's processors. Create the cluster with such a limit, or use virtual machines"
  [ $(($1 * CPU * SHARED / 1000)) -le $(($(nproc) * 1000)) ] ||
    fail "$SHARED nodes would together take more than all processors of their computer. Name fewer nodes, or create the cluster with a lower CPU limit"
}

# In a file system in memory: no program holds it, so none is ended for it.
fill_memory() {
  # shellcheck disable=SC2046
  set -- $(memory)
  [ -z "$SHARED" ] || [ $# -eq 2 ] ||
    fail "it is a container without a memory limit, and would take its computer's memory. Create the cluster with such a limit, or use virtual machines"
  for other in "$FOLDER"/*.memory; do
    [ ! -d "$other" ] || fail 'another fault fills its memory already'
  done
  more=$(($1 * MEMORY / 1000 - $(memory_used "${2:-}")))
  [ "$more" -ge 4096 ] || fail "its programs use as much of its memory already"
  [ -z "$SHARED" ] || [ $((more * SHARED / 512)) -le "$(meminfo MemAvailable)" ] ||
    fail "its computer has too little memory: together, the nodes would take more than half of what is left there. Name fewer nodes, or create the cluster with a lower memory limit"
  mkdir "$FOLDER/$ID.memory"
  mount -t tmpfs -o "size=$more,mode=0700" none "$FOLDER/$ID.memory" || {
    rmdir "$FOLDER/$ID.memory"
    fail 'no tmpfs can be mounted on it'
  }
  head -c "$more" /dev/zero >"$FOLDER/$ID.memory/filled" || fail 'its memory cannot be filled'
}

# fault-unit.sh calls it; its processes end with the unit.
keep_doing() {
  [ "$CPU" -gt 0 ] || return 0
  # shellcheck disable=SC2046
  set -- $(processors)
  programs=$((($1 + 999) / 1000))
  share=$(($1 * CPU / 1000 / programs))
  while [ "$programs" -gt 0 ]; do
    keep_busy &
    programs=$((programs - 1))
  done
}

# Compares what it has used with the time that has passed, because a limit makes it wait as well. What it could not use
# is given up after two seconds.
keep_busy() {
  since=$(hundredths) used=
  while :; do
    count=0
    while [ "$count" -lt 1000 ]; do count=$((count + 1)); done
    read -r up _ </proc/uptime
    read -r own </proc/self/stat
    # shellcheck disable=SC2086 # one word each
    set -- ${own##*) }
    now=${up%.*}${up#*.} mine=$((${12} + ${13}))
    if [ -z "$used" ] || [ $((now - since)) -gt 200 ]; then since=$now used=$mine; fi
    [ $(((mine - used) * 1000)) -le $(((now - since) * share)) ] || sleep 0.02
  done
}

hundredths() {
  read -r up _ </proc/uptime
  echo "${up%.*}${up#*.}"
}

# How much the node has, and the control group that limits it, if any does: bytes; thousandths of processors.
memory() { lowest "$(($(meminfo MemTotal) * 1024))" memory_limit memory; }
processors() { lowest "$(($(nproc) * 1000))" processors_limit cpu; }

lowest() {
  least=$1 limit_of=$2 found=
  for group in $(groups_of "$3"); do
    limit=$("$limit_of" "$group" 2>/dev/null || :)
    case $limit in '' | *[!0-9]*) continue ;; esac
    [ "$limit" -ge "$least" ] || { least=$limit found=$group; }
  done
  echo "$least $found"
}

# The node's control groups, up to the outermost that it sees. The tree of cgroups 1 has one for each controller; a
# container may have only its own part of it, below which the path does not exist.
groups_of() {
  tree=$cgroups/$1 key="[0-9]*:\\([^:]*,\\)\\{0,1\\}$1\\(,[^:]*\\)\\{0,1\\}"
  [ ! -e "$cgroups/cgroup.controllers" ] || tree=$cgroups key=0:
  group=$tree$(sed -n "s/^$key://p" "$paths")
  group=${group%/}
  while [ "$group" != "$tree" ]; do
    [ ! -d "$group" ] || echo "$group"
    group=${group%/*}
  done
  echo "$tree"
}

memory_limit() { cat "$1/memory.max" || cat "$1/memory.limit_in_bytes"; }

processors_limit() {
  { cat "$1/cpu.max" || echo "$(cat "$1/cpu.cfs_quota_us") $(cat "$1/cpu.cfs_period_us")"; } |
    awk '$1 + 0 > 0 && $2 > 0 { printf "%d", $1 * 1000 / $2 }'
}

# Without what the kernel gives back if it is needed: copies of files on disks.
memory_used() {
  [ -n "$1" ] || {
    echo $((($(meminfo MemTotal) - $(meminfo MemAvailable)) * 1024))
    return
  }
  all=$(cat "$1/memory.current" 2>/dev/null || cat "$1/memory.usage_in_bytes")
  awk -v all="$all" '$1 ~ /^(file|total_cache)$/ { all -= $2 } $1 ~ /^(total_)?shmem$/ { key[$1] = $2 }
    END { printf "%.0f", all + ("total_shmem" in key ? key["total_shmem"] : key["shmem"]) }' "$1/memory.stat"
}

# In microseconds, since some moment.
processors_used() {
  if [ -z "${1:-}" ]; then
    awk '$1 == "cpu" { printf "%.0f", ($2 + $3 + $4 + $7 + $8 + $9) * 10000 }' /proc/stat
  else
    awk '$1 == "usage_usec" { printf "%s", $2; known = 1 } END { exit !known }' "$1/cpu.stat" 2>/dev/null ||
      echo $(($(cat "$cgroups/cpuacct${1#"$cgroups/cpu"}/cpuacct.usage") / 1000))
  fi
}

meminfo() { sed -n "s/^$1: *\\([0-9]*\\) kB/\\1/p" /proc/meminfo; }
