import { ipDetect } from "../ip-detect.ts";

/**
 * Prints the node's public IPv4 address, or the private one if it has none. Asks the metadata service only on machines that cloud-init knows to be
 * the cloud's, because elsewhere nothing answers at that address.
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
