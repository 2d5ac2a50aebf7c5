import { privateAddress } from "../../src/backend/vm/machines/private-network.ts";
import { machineArguments } from "../../src/backend/vm/machines/machine-arguments.ts";
import { machineFiles } from "../../src/backend/vm/machines/machine-process.ts";
import { architectureOf } from "../../src/backend/vm/qemu/architecture.ts";

export interface MachineTraits {
  readonly isOffline?: boolean | undefined;
  readonly hasIpv6: boolean;
  readonly ports: Readonly<Record<"ssh" | "http" | "https", number>>;
}

/** The command line of QEMU for the first of two machines, without its program. */
export function machineWords({ isOffline, hasIpv6, ports }: MachineTraits): readonly string[] {
  const node = {
    id: "vm-0123abcd-0",
    role: "master",
    index: 0,
    privateAddress: privateAddress(0),
  } as const;
  return machineArguments({
    architecture: architectureOf("x64"),
    accelerator: "tcg",
    isSandboxed: true,
    options: { memoryMegabytes: 768, cpus: 1, isOffline },
    files: machineFiles("/state/vm/a-c1", node),
    node: { ...node, ports },
    place: 0,
    sockets: { folder: "/tmp/a", count: 2 },
    isOfTemplate: false,
    hasIpv6,
  });
}
