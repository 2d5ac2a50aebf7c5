import { type ClusterRecord, nodeReference } from "../../cluster/record.ts";
import { ClusterError } from "../../errors.ts";
import { describeContainers } from "./describe.ts";
import type { Engine } from "./engine.ts";
import { toClusters } from "./records.ts";

const shownLines = 8;
/** Colours and the like. */
// oxlint-disable-next-line no-control-regex
const controls = /\u001B\[[0-9;?]*[A-Za-z]|[^\P{Cc}\n]/gu;

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
    const name = nodeReference(ended);
    const log = await engine.ask({ words: ["logs", `--tail=${shownLines}`, ended.id] }, signal).catch(() => "");
    const said = log.replace(controls, "");
    throw new ClusterError(
      "machine-failed",
      `${name} (${ended.id}) ended before it could be used: ${ended.stateReason ?? "it is being removed"}.\n${said}`.trim(),
      {
        hint: "The node image must start systemd as /sbin/init, with sshd; the doctor command tells what the machine lacks.",
        facts: { node: name, machine: ended.id, reason: ended.stateReason },
      },
    );
  };
}
