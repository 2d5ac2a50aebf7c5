/**
 * Prints the node's private IPv4 address. Nothing is sent: the kernel is asked which address it would send from; without a default route, the
 * host's first address is taken.
 */
export const ipDetect = `#!/bin/sh
PATH=$PATH:/usr/sbin:/sbin
address=$(ip -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \\([0-9.]*\\).*/\\1/p' | head -n 1)
[ -n "$address" ] || address=$(hostname -I 2>/dev/null | tr ' ' '\\n' | grep -E '^([0-9]+\\.){3}[0-9]+$' | head -n 1)
if [ -z "$address" ]; then
  echo 'This machine has no IPv4 address' >&2
  exit 1
fi
echo "$address"
`;

/**
 * Prints the node's public IPv4 address, or the private one where it has none. The metadata service is asked only on machines that cloud-init
 * knows to be the cloud's: elsewhere nobody answers at that address.
 */
export const ipDetectPublic = `${ipDetect.trimEnd().replace(/\necho "\$address"$/, "")}
if grep -qs DataSourceEc2 /var/lib/cloud/instance/datasource; then
  service=http://169.254.169.254/latest
  token=$(curl -fsS --noproxy '*' --connect-timeout 2 --max-time 5 -X PUT \\
    -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$service/api/token" 2>/dev/null)
  public=$(curl -fsS --noproxy '*' --connect-timeout 2 --max-time 5 \\
    -H "X-aws-ec2-metadata-token: $token" "$service/meta-data/public-ipv4" 2>/dev/null)
  [ -z "$public" ] || address=$public
fi
echo "$address"
`;
