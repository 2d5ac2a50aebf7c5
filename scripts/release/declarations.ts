/** What the programs declare, taken from their drivers: src/bin/cluster-<name>.ts has its in src/bin/<name>-driver.ts as `<name>Driver`. */
import { join } from "node:path";
import type { Program } from "../../src/cli/command.ts";
import type { Driver } from "../../src/commands/driver.ts";
import { programFor } from "../../src/commands/program.ts";
import { programs } from "../build.ts";

export async function declaredPrograms(root: string): Promise<readonly Program[]> {
  return Promise.all((await programs()).map(async (name) => declared(root, name)));
}

async function declared(root: string, program: string): Promise<Program> {
  const name = program.replace(/^cluster-/, "");
  const path = join("src", "bin", `${name}-driver.ts`);
  const loaded = (await import(join(root, path))) as Readonly<Record<string, Driver | undefined>>;
  const driver = loaded[`${name}Driver`];
  if (driver === undefined) throw new Error(`${path} does not export ${name}Driver`);
  return programFor(driver);
}
