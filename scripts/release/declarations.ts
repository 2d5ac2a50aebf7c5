import type { Program } from "../../src/cli/command.ts";
import { programs } from "../build.ts";
import { declared } from "../declared.ts";

export async function declaredPrograms(root: string): Promise<readonly Program[]> {
  return Promise.all((await programs()).map(async (name) => declared(root, name)));
}
