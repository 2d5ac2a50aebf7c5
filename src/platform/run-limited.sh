#!/bin/sh
# Runs a program until it ends, or this script gets TERM. Prints a mark, "=" and the program's status as soon as it has
# ended by itself; what it leaves then goes on, such as a mount. After TERM, all that it has started gets TERM too, and KILL
# a second later: what is in the control group in which it began, whatever has started that, and what is in its process
# tree, also in other groups, as of su. Runs as root, behind process-tree.sh. Arguments: the mark, the program and its
# arguments.

mark=$1
shift
tree=/sys/fs/cgroup/systemd name=name=systemd
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || tree=/sys/fs/cgroup name=
own=$tree$(sed -n "s/^[0-9]*:$name://p" /proc/self/cgroup | head -n 1)
group=$own/cluster-e2e-$$
mkdir "$group" 2>/dev/null || group=

started() {
  [ -z "$group" ] || cat "$group/cgroup.procs"
  process_tree $$ 0 | awk -v self=$$ '$1 != self { print $1 }'
}
end() {
  trap '' TERM
  all=$(started)
  # shellcheck disable=SC2086 # one word each
  kill -TERM $all
  sleep 1
  # shellcheck disable=SC2046,SC2086 # one word each
  kill -KILL $all $(started)
  for _ in 1 2 3 4 5 6 7 8 9 10; do ! rmdir "$group" || break; sleep 0.1; done
  exit 124
} 2>/dev/null

# Moves what goes on to where it would be without this script.
leave() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! rmdir "$group" || break
    while read -r each; do echo "$each" >"$own/cgroup.procs"; done <"$group/cgroup.procs"
  done
} 2>/dev/null

trap end TERM
(
  [ -z "$group" ] || echo 0 >"$group/cgroup.procs"
  exec "$@"
) &
wait $!
printf '\n%s=%s\n' "$mark" $?
[ -z "$group" ] || leave
