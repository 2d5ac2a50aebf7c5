#!/bin/sh
# Replaces docker, whose path is $real: answers "docker version" like a Docker before 18.09, without the versions of
# its components. The install script of an old release runs it as root.
# shellcheck disable=SC2154 # $real

if [ "$*" = version ]; then
  exec "$real" version --format 'Client:
 Version: {{.Client.Version}}
Server:
 Version: {{.Server.Version}}'
fi
exec "$real" "$@"
