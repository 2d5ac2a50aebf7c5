import { ClusterError } from "../errors.ts";

/** The name, which a shell can be given in `export`; anything else fails as `bad-usage`. */
export function checkedVariableName(name: string): string {
  if (/^[A-Za-z_]\w*$/.test(name)) return name;
  throw new ClusterError("bad-usage", `"${name}" is no name of an environment variable.`);
}
