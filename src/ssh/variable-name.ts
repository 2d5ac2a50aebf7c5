import { ClusterError } from "../errors.ts";

/** Returns why a shell would not accept the name in `export`, or `undefined`. */
export const variableNameProblem = (name: string): string | undefined =>
  /^[A-Za-z_]\w*$/.test(name) ? undefined : `"${name}" is not a name for an environment variable`;

/** Returns the name if a shell accepts it in `export`; otherwise fails as `bad-usage`. */
export function checkedVariableName(name: string): string {
  const problem = variableNameProblem(name);
  if (problem === undefined) return name;
  throw new ClusterError("bad-usage", `${problem}.`);
}
