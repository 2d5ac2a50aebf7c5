#!/bin/bash
# Runs a platform's own check on a node, as root, and prints the last line of its output that isn't blank. Ends with
# the check's status: 0 if the node is ready.

cd /opt/cluster-platform/folder || exit 1
# shellcheck source=/dev/null
. /opt/cluster-platform/environment
./check </dev/null 2>&1 | tail -c 65536 | awk 'NF { line = $0 } END { if (line != "") print line }'
exit "${PIPESTATUS[0]}"
