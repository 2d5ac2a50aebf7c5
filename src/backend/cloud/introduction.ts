import type { NodeRecord } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/pool.ts";
import type { Surroundings } from "../backend.ts";
import { awaitFirstBoot, usualFirstBootLimitMs } from "../first-boot.ts";
import type { FirstHostKeys } from "../first-host-keys.ts";
import type { Introduction } from "../meet-node.ts";
import { silenceText } from "./silence.ts";

interface Contact {
  readonly directory: string;
  readonly connections: ConnectionPool;
  /** Those in the user data. */
  readonly firstHostKeys: FirstHostKeys;
  readonly deadlineMs: number;
  /** The address ranges that the cluster's rules let in. */
  readonly cidrs: readonly string[];
  readonly onNode: (node: NodeRecord) => void;
}

/** What is particular to a cloud machine's first contact: cloud-init, the deadline, and rules that may keep this machine out. */
export function cloudIntroduction(
  { cidrs, ...contact }: Contact,
  { environment, progress }: Surroundings,
): Introduction {
  return {
    ...contact,
    firstBoot: async (connection, name, signal) => {
      const machine = { name, hasDeadline: true, limitMs: usualFirstBootLimitMs };
      const complaints = await awaitFirstBoot(connection, machine, signal);
      if (complaints !== undefined) progress.detail(1, `${name}: cloud-init complained: ${complaints}`);
    },
    silence: async (signal) => {
      const reason = await silenceText(environment, cidrs, signal);
      const hint = "Create the cluster anew, naming the addresses that must reach it with --admin-cidr.";
      return reason === undefined ? undefined : { reason, hint };
    },
  };
}
