import { ClusterError } from "../errors.ts";

/** Returns the name if a shell accepts it in `export`; otherwise fails as `bad-usage`. */
export function checkedVariableName(name: string): string {
  if (/^[A-Za-z_]\w*$/.test(name)) return name;
  throw new ClusterError("bad-usage", `"${name}" is not a name for an environment variable.`);
}
