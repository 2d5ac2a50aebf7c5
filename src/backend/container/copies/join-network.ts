import { ClusterError } from "../../../errors.ts";
import { type NodeRecord, nodeReference } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { outsideLines } from "../../../system/printable.ts";
import type { NodeShell } from "../../contract.ts";
import type { IdentityFile } from "../launch/launch.ts";
import joinNetwork from "./join-network.sh" with { type: "text" };

const unit = "cluster-e2e-network.service";
const program = "usr/local/sbin/cluster-e2e-network";
const limitMs = 60_000;

const unitText = `[Unit]
Description=The private address that the platform knows
DefaultDependencies=no
Before=sysinit.target network-pre.target
Wants=network-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /${program}
`;

/** The addresses of a copy's node. */
interface CopyAddresses {
  /** The engine's. */
  readonly address: string;
  /** The private one with the bits of its network, such as `172.18.0.2/16`. */
  readonly platformAddress: string;
}

/** Returns the files that give a node its private address at each boot, in a network with these other nodes alone. */
export const networkFiles = (
  { address, platformAddress }: CopyAddresses,
  others: readonly CopyAddresses[],
): readonly IdentityFile[] => [
  {
    name: program,
    mode: 0o755,
    text: shellText(joinNetwork, {
      ADDRESS: platformAddress,
      ENGINE_ADDRESS: address,
      PEERS: others
        .map((other) => `${other.address} ${other.platformAddress.split("/")[0]}`)
        .join("\n"),
    }),
  },
  { name: `etc/systemd/system/${unit}`, mode: 0o644, text: unitText },
  { name: "etc/systemd/system/sysinit.target.d/", mode: 0o755, text: "" },
  {
    name: "etc/systemd/system/sysinit.target.d/cluster-e2e.conf",
    mode: 0o644,
    text: `[Unit]\nWants=${unit}\n`,
  },
];

/** Throws `machine-failed` if the node could not get its private address. */
export async function assertJoined(
  node: NodeRecord,
  shell: NodeShell,
  signal: AbortSignal,
): Promise<void> {
  const argv = ["systemctl", "status", "--no-pager", "--output=cat", "--lines=5", unit];
  const { status, stdout } = await shell.run(
    { argv, limitMs, task: "joining its private network" },
    signal,
  );
  if (status === 0) return;
  const name = nodeReference(node);
  const lines = outsideLines(stdout, 20).map((line) => `  ${line}`);
  throw new ClusterError(
    "machine-failed",
    [`${name} could not join the private network:`, ...lines].join("\n"),
    {
      hint: "Copies need VXLAN and IPsec policies in the kernel of the engine's machine (modprobe -a vxlan xfrm_user), and ip and bridge (iproute2) in the node image.",
      facts: { node: name },
    },
  );
}
