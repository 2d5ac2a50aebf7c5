import { parseClusterId } from "../model/parse-values.ts";

/** Returns what is wrong with a cluster id, or `undefined`. */
export function clusterIdProblem(text: string): string | undefined {
  if (parseClusterId(text) !== undefined) return undefined;
  return `"${text}" is not a cluster id: use 1 to 63 letters, digits, "_", "." and "-", beginning with a letter or digit`;
}
