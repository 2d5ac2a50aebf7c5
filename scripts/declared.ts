import { join } from "node:path";
import type { BackendKind } from "../src/backend/contract.ts";
import type { Program } from "../src/cli/command.ts";
import { programFor } from "../src/commands/program.ts";

/** Returns the declarations of a program: that of src/bin/cluster-<name>.ts has those of `<name>Kind` in src/backend/<name>/<name>-kind.ts. */
export async function declared(root: string, program: string): Promise<Program> {
  const name = program.replace(/^cluster-/, "");
  const path = join("src", "backend", name, `${name}-kind.ts`);
  const loaded = (await import(join(root, path))) as Readonly<
    Record<string, BackendKind | undefined>
  >;
  const kind = loaded[`${name}Kind`];
  if (kind === undefined) throw new Error(`${path} does not export ${name}Kind`);
  return programFor(kind);
}
