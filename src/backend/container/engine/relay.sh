#!/bin/bash
# Leads to the node's own sshd, whose greeting the node sends as soon as it runs. The engine runs it on the node, as root.
# It is one line, because it becomes a part of one in OpenSSH's configuration. Ends when either side does.

exec 3<>/dev/tcp/127.0.0.1/22 4<&0 || exit; { cat <&4 >&3; kill $$; } >/dev/null 2>&1 & exec cat <&3 4<&-
