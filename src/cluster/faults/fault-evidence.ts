import { numbered } from "../../system/amounts.ts";
import { ClusterError } from "../../errors.ts";
import type { Observation } from "../../platform/faults/node-faults.ts";
import type { FaultRequest } from "./fault-request.ts";

/** A node's observation, and this computer's clock at that moment. */
export interface Observed extends Observation {
  readonly hereMs: number;
}

const clockSlackMs = 5_000;
/** ext4 reserves 16 MiB that no program can write. */
const diskSlackBytes = 32 * 2 ** 20;

/**
 * Compares observations from before and after the beginning of a fault, and describes the difference. Throws
 * `remote-command-failed` if the fault doesn't show.
 */
export function evidenceOf(
  request: FaultRequest,
  before: readonly Observed[],
  after: readonly Observed[],
): string {
  const refuse = (found: string): ClusterError =>
    new ClusterError("remote-command-failed", `The fault was begun, but does not show: ${found}.`, {
      hint: "It has been healed. Make sure that it lasts long enough, and that nothing on the nodes undoes it.",
      facts: { fault: request.kind },
    });
  const found = `${stateOf(request.kind, after)}, before: ${stateOf(request.kind, before)}`;
  switch (request.kind) {
    case "partition":
      if (fastest(after) !== undefined) throw refuse(found);
      return found;
    case "network": {
      const hasDelay = (fastest(after) ?? Infinity) >= (request.delayMs ?? 0) * 0.9;
      if (!hasDelay) throw refuse(found);
      return found;
    }
    case "clock": {
      const moved = after.map((each, index) => aheadMs(each) - aheadMs(before[index] ?? each));
      if (moved.some((ms) => Math.abs(ms - (request.offsetMs ?? 0)) > clockSlackMs))
        throw refuse(found);
      return found;
    }
    case "disk":
      if (after.some(({ freeBytes = 0 }) => freeBytes > (request.leaveBytes ?? 0) + diskSlackBytes))
        throw refuse(found);
      return found;
  }
}

/** Describes what faults of this kind change, over all nodes. */
export function stateOf(kind: FaultRequest["kind"], observed: readonly Observed[]): string {
  const links = observed.flatMap(({ linksMs }) => [...linksMs.values()]);
  switch (kind) {
    case "partition":
      return `${links.filter((ms) => ms !== undefined).length} of ${numbered(links.length, "ping")} answered`;
    case "network":
      if (links.length === 0) return "no other node to ping";
      return fastest(observed) === undefined
        ? "no ping is answered"
        : `a round trip takes ${fastest(observed)} ms`;
    case "clock": {
      const ahead = observed.map(aheadMs);
      const isBehind = ahead.every((ms) => ms < 0);
      const off = ahead.map((ms) => (isBehind ? -ms : ms));
      return `the clock is ${range(off, (ms) => (ms / 1000).toFixed(1))} s ${isBehind ? "behind" : "ahead of"} this computer's`;
    }
    case "disk": {
      const free = observed.map(({ freeBytes = 0 }) => freeBytes);
      return `${range(free, (bytes) => (bytes / 1e6).toFixed(1))} MB are free`;
    }
  }
}

function fastest(observed: readonly Observed[]): number | undefined {
  const known = observed
    .flatMap(({ linksMs }) => [...linksMs.values()])
    .filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

const aheadMs = ({ clockMs, hereMs }: Observed): number =>
  clockMs === undefined ? 0 : clockMs - hereMs;

function range(values: readonly number[], shown: (value: number) => string): string {
  const [least, most] = [shown(Math.min(...values)), shown(Math.max(...values))];
  return least === most ? least : `${least} to ${most}`;
}
