/** Private addresses of nodes: 10.93.0.2, 10.93.0.3, …; each cluster has its own network, so all clusters can use the same addresses. */
const prefix = "10.93";
const networkBits = 16;

/** Returns the address of the node at this place in the launch order. */
export function privateAddress(place: number): string {
  const number = place + 2;
  return `${prefix}.${Math.floor(number / 256)}.${number % 256}`;
}

export const privateAddressWithBits = (place: number): string => `${privateAddress(place)}/${networkBits}`;

/** Prints the node's private IPv4 address. It isn't the address of the default route, which leads outside, where all nodes have the same address. */
export const ipDetect = `#!/bin/sh
PATH=$PATH:/usr/sbin:/sbin
address=$(ip -4 -o address show 2>/dev/null | sed -n 's|.* inet \\(${prefix.replace(".", "\\.")}\\.[0-9.]*\\)/${networkBits} .*|\\1|p' | head -n 1)
if [ -z "$address" ]; then
  echo 'This machine has no address in the private network of its cluster' >&2
  exit 1
fi
echo "$address"
`;
