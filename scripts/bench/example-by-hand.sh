#!/bin/sh
# Does by hand what `create --wait` has done on a node of the example etcd. Runs as root in a container, in the example's
# folder and with the environment of its scripts. Prints what they print.
set -eu

# Until then, it starts no units.
until systemctl is-system-running 2>/dev/null | grep -Eq 'starting|running|degraded'; do sleep 0.05; done
./install master
until ./check; do sleep 0.1; done
