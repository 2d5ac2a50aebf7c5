import { parseClusterId } from "../model/parse-values.ts";

/** Returns what is wrong with a cluster id, or `undefined`. */
export function clusterIdProblem(text: string): string | undefined {
  if (parseClusterId(text) !== undefined) return undefined;
  return `"${text}" is no cluster id: 1 to 63 letters, digits, "_", "." and "-", beginning with a letter or digit`;
}
