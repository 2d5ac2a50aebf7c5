import type { ClusterRecord } from "../../model/cluster-record.ts";
import { machineFailed } from "../machine-failed.ts";
import { describeContainers } from "./describe.ts";
import type { Engine } from "./engine.ts";
import { consoleOutput } from "./evidence.ts";
import { toClusters } from "./records.ts";

const hint =
  "The node image must start systemd as /sbin/init, with sshd; the doctor command tells what the machine lacks.";

/** Looks at all containers of a creation. What it returns throws `machine-failed` when one of them has stopped. */
export function watchMachines(
  engine: Engine,
  { creationId, root }: { readonly creationId: string; readonly root: string },
): (signal: AbortSignal) => Promise<ClusterRecord | undefined> {
  return async (signal) => {
    const containers = await describeContainers(engine, { creationId }, signal);
    const [cluster] = toClusters({ containers, networks: [], abandoned: new Set() }, root);
    const ended = cluster?.nodes.find((node) => node.state === "ending" || node.state === "ended");
    if (ended === undefined) return cluster;
    const said = await consoleOutput(engine, ended, signal).catch(() => "");
    throw machineFailed(ended, { said, hint });
  };
}
