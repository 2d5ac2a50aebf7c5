import { join } from "node:path";
import type { Program } from "../src/cli/command.ts";
import type { Driver } from "../src/commands/driver.ts";
import { programFor } from "../src/commands/program.ts";

/** Returns the declarations of a program from its driver: that of src/bin/cluster-<name>.ts is `<name>Driver` in src/bin/<name>-driver.ts. */
export async function declared(root: string, program: string): Promise<Program> {
  const name = program.replace(/^cluster-/, "");
  const path = join("src", "bin", `${name}-driver.ts`);
  const loaded = (await import(join(root, path))) as Readonly<Record<string, Driver | undefined>>;
  const driver = loaded[`${name}Driver`];
  if (driver === undefined) throw new Error(`${path} does not export ${name}Driver`);
  return programFor(driver);
}
