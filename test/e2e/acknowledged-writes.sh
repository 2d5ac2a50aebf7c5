#!/bin/sh
# Writes to etcd for so many seconds ($1), reads each write back from another member, and at the end reads all of them from
# every member. Runs as root on a master, with CLUSTER_MASTERS. Fails if a write that was acknowledged is lost.
# What is not acknowledged may be there or not.
set -u
export ETCDCTL_API=3

written=$(mktemp)
end=$(($(date +%s) + $1))
number=0
on() {
  member=$1
  shift
  etcdctl --endpoints "http://$member:2379" --command-timeout 2s --dial-timeout 1s "$@" 2>/dev/null
}

while [ "$(date +%s)" -lt "$end" ]; do
  for member in $CLUSTER_MASTERS; do
    number=$((number + 1))
    on "$member" put "writes/$number" "value $number" >/dev/null || continue
    echo "$number" >>"$written"
    for other in $CLUSTER_MASTERS; do
      [ "$other" != "$member" ] || continue
      found=$(on "$other" get --print-value-only "writes/$number") || continue
      [ "$found" = "value $number" ] || {
        echo "write $number was acknowledged by $member, but $other has '$found'"
        exit 1
      }
      break
    done
  done
done

sort "$written" >"$written.sorted"
# By now every member may be healthy again, or soon.
for member in $CLUSTER_MASTERS; do
  tries=60
  until found=$(on "$member" get --prefix --keys-only writes/); do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "$member does not answer" && exit 1; }
    sleep 1
  done
  lost=$(echo "$found" | sed -n 's|^writes/||p' | sort | comm -13 - "$written.sorted")
  [ -z "$lost" ] || { echo "$member lost acknowledged writes: $(echo "$lost" | tr '\n' ' ')" && exit 1; }
done
echo "$(wc -l <"$written") of $number writes were acknowledged, and none is lost"
