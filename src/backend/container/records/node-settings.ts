import { isMapping } from "../../../system/is-mapping.ts";
import { cpusProblem, memoryProblem, volumeProblem } from "../options.ts";
import type { ContainerOptions } from "../options.ts";
import { parseJson } from "../../../system/parse-json.ts";

/** The options that a node was created with. */
export type NodeSettings = Pick<ContainerOptions, "volumes" | "memory" | "cpus">;

/** The text of the label. */
export const settingsText = ({ volumes, memory, cpus }: ContainerOptions): string =>
  JSON.stringify({ volumes, memory, cpus });

/** Returns `undefined` for a text of another shape: these values become options of the engine's command line. */
export function parseNodeSettings(text: string | undefined): NodeSettings | undefined {
  const found = parseJson(text ?? "");
  if (!isMapping(found)) return undefined;
  const { volumes, memory, cpus } = found;
  if (!Array.isArray(volumes) || !volumes.every((volume) => isFree(volume, volumeProblem))) return undefined;
  if (memory !== undefined && !isFree(memory, memoryProblem)) return undefined;
  if (cpus !== undefined && !isFree(cpus, cpusProblem)) return undefined;
  return { volumes, ...(memory !== undefined && { memory }), ...(cpus !== undefined && { cpus }) };
}

const isFree = (found: unknown, problemOf: (text: string) => string | undefined): found is string =>
  typeof found === "string" && problemOf(found) === undefined;
