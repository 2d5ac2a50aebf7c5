#!/bin/sh
# shellcheck disable=SC2034 # ip-detect-public prints address
# Finds the node's public IPv4 address, or keeps the private one if it has none. The installer runs it on each node as
# ip-detect-public, as root, behind find-address.sh. Asks the metadata service only on machines that cloud-init knows
# to be the cloud's, because elsewhere nothing answers at that address.

if grep -qs DataSourceEc2 /var/lib/cloud/instance/datasource; then
  service=http://169.254.169.254/latest
  token=$(curl -fsS --noproxy '*' --connect-timeout 2 --max-time 5 -X PUT \
    -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$service/api/token" 2>/dev/null)
  public=$(curl -fsS --noproxy '*' --connect-timeout 2 --max-time 5 \
    -H "X-aws-ec2-metadata-token: $token" "$service/meta-data/public-ipv4" 2>/dev/null)
  [ -z "$public" ] || address=$public
fi
