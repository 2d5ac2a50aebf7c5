import type { ClusterRecord } from "../../model/cluster-record.ts";
import { machineFailed } from "../machine-failed.ts";
import { describeContainers } from "./describe.ts";
import type { Engine } from "./engine.ts";
import { consoleOutput } from "./evidence.ts";
import { type NetworkFacts, readNodes } from "./read-containers.ts";
import { toClusters } from "./records.ts";

const hint =
  "The node image must start systemd as /sbin/init, with sshd; the doctor command tells what the machine lacks.";

/** Looks at all containers of a creation. What it returns throws `machine-failed` when one of them has stopped. */
export function watchMachines(
  engine: Engine,
  { network, root }: { readonly network: NetworkFacts; readonly root: string },
): (signal: AbortSignal) => Promise<ClusterRecord | undefined> {
  return async (signal) => {
    const described = await describeContainers(engine, { creationId: network.creationId }, signal);
    const containers = readNodes(described, [network]).read;
    const [cluster] = toClusters({ containers, networks: [network], abandoned: new Set() }, root);
    const ended = cluster?.nodes.find((node) => node.state === "ending" || node.state === "ended");
    if (ended === undefined) return cluster;
    const said = await consoleOutput(engine, ended, signal).catch(() => "");
    throw machineFailed(ended, { said, hint });
  };
}
