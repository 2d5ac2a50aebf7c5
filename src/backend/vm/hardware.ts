import * as read from "../../model/reader.ts";
import { numbered } from "../../system/amounts.ts";

/** The name is a part of QEMU's command line, where a comma would begin another option. */
export const parseCpuModel = read.matching(/^[A-Za-z0-9][\w.-]{0,63}$/);

/**
 * What a cluster's machines are given and keep: in its facts, its snapshots and files, in copies
 * and templates. All of these carry it whole.
 */
export const hardwareFields = {
  memoryMegabytes: read.positiveInteger,
  cpus: read.positiveInteger,
  /** QEMU's name for the processor that the nodes see. Absent: the accelerator's own. */
  cpuModel: read.optional(parseCpuModel),
};

const parseHardware = read.object(hardwareFields);

export type Hardware = read.ValueOf<typeof parseHardware>;

/** Returns the hardware among other values, in the order of its fields: names of templates depend on it. */
export const hardwareOf = (values: Hardware): Hardware =>
  Object.fromEntries(
    Object.keys(hardwareFields).flatMap((name) => {
      const value = values[name as keyof Hardware];
      return value === undefined ? [] : [[name, value]];
    }),
  ) as unknown as Hardware;

export const hardwareText = ({ memoryMegabytes, cpus, cpuModel }: Hardware): string =>
  `${memoryMegabytes} MB of memory, ${numbered(cpus, "CPU")}${cpuModel === undefined ? "" : ` (${cpuModel})`}`;
