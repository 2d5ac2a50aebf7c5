import { optionName } from "../../references.ts";
import { clock } from "./clock.ts";
import { disk } from "./disk.ts";
import {
  type FaultBase,
  type FaultOptions,
  type FaultRow,
  type FaultValues,
  nodesOption,
  textOption,
} from "./fault-kind.ts";
import { io } from "./io.ts";
import { network } from "./network.ts";
import { partition } from "./partition.ts";
import { power } from "./power.ts";
import { pressure } from "./pressure.ts";
import { processes } from "./processes.ts";

/** All kinds of faults. The command line, its help, the library and the shown effects follow from these rows. */
const rows = { partition, network, clock, disk, process: processes, pressure, io, power };

export type FaultKind = keyof typeof rows;
export const faultRows: Readonly<Record<FaultKind, FaultRow<FaultOptions, FaultOptionValues>>> =
  rows;
export const faultKinds = Object.keys(rows) as readonly FaultKind[];

/** Options that every kind has, for the command line and the library. */
export const commonOptions = {
  /**
   * A shell line. The fault counts as shown only when this succeeds, as root, on each of
   * `untilNodes`, and as healed only when every node's check passes.
   */
  until: textOption(
    {
      flag: "--until",
      placeholder: "<command>",
      summary:
        "the fault counts as shown only when this shell line succeeds on a node, and as healed only when every node's check passes",
    },
    /^[^\p{Cc}]{1,4000}$/u,
    "a shell line of up to 4000 characters",
  ),
  /** Default: the first master that answers. */
  untilNodes: nodesOption({
    flag: "--until-node",
    summary: `where the command of ${optionName("until")} must succeed`,
    defaultText: "the first master that answers",
  }),
} satisfies FaultOptions;

/** The options of all kinds. */
export interface FaultOptionValues
  extends
    FaultValues<typeof commonOptions>,
    FaultValues<typeof partition.options>,
    FaultValues<typeof network.options>,
    FaultValues<typeof clock.options>,
    FaultValues<typeof disk.options>,
    FaultValues<typeof processes.options>,
    FaultValues<typeof pressure.options>,
    FaultValues<typeof io.options> {}

/** A fault to begin. */
export interface FaultRequest extends FaultBase, FaultOptionValues {
  /**
   * `partition`: packets from one side don't arrive at the other. `network`: what nodes send
   * arrives late, or not at all. `clock`: clocks are wrong; not on containers. `disk`: the file
   * system of a folder is full, which must be a tmpfs on containers. `process`: a service or a
   * program is killed, paused or kept dead. `pressure`: processors are
   * busy, or memory is full; on containers within their limits. `io`: a disk stalls, is slow or fails, and `power`: a
   * machine restarts without what is only in its memory; not on containers.
   */
  readonly kind: FaultKind;
}
