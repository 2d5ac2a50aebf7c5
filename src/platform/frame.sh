#!/bin/sh
# A function for scripts that print texts of a node; see node-logs.ts. Runs as root. frame NAME prints its stdin
# as one line.

frame() {
  printf '%s ' "$1"
  base64 | tr -d '\n'
  echo
}
