#!/bin/sh
# Writes to etcd on master_0 until so many writes ($1) are acknowledged, whatever happens to the node meanwhile, and then
# reads all of them. Runs on this computer, with CLUSTER_PROGRAM and CLUSTER_ID. Fails if one of them is lost.
set -u
written=$(mktemp)
trap 'rm -f "$written"' EXIT
on_node() { "$CLUSTER_PROGRAM" run --cluster-id "$CLUSTER_ID" --node master_0 --no-test-env "$@" 2>/dev/null; }
# From the number after $0 to $1.
# shellcheck disable=SC2016 # the node's shell expands these words
put='number=$0
while [ "$number" -lt "$1" ]; do
  number=$((number + 1))
  ETCDCTL_API=3 etcdctl --command-timeout=5s put "writes/$number" x >/dev/null && echo "$number"
  sleep 0.5
done'

while left=$(($1 - $(wc -l <"$written"))) && [ "$left" -gt 0 ]; do
  last=$(tail -n 1 "$written")
  on_node sh -c "$put" "${last:-0}" "$((${last:-0} + left))" >>"$written"
done
found=$(on_node --until 5m env ETCDCTL_API=3 etcdctl get --prefix --keys-only writes/)
lost=$(
  while read -r number; do
    echo "$found" | grep -qx "writes/$number" || echo "$number"
  done <"$written"
)
[ -z "$lost" ] || { echo "$(echo "$lost" | wc -l) of $1 acknowledged writes are lost" && exit 1; }
echo "none of $1 acknowledged writes is lost"
