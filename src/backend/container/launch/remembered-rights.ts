import { readFile, writeFile } from "node:fs/promises";
import type { Engine } from "../engine/engine.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { findRights, possibleRights, type Rights } from "./system-flags.ts";

/**
 * Returns what containers are allowed to do. Tests this at the first creation only, because a trial takes most of a second and nothing else can begin
 * meanwhile. The file `memory` keeps the answer for as long as the engine runs, if one run can be told from the next.
 */
export async function rememberedRights(
  engine: Engine,
  { facts, image, memory }: { readonly facts: EngineFacts; readonly image: string; readonly memory: string },
  signal: AbortSignal,
): Promise<Rights> {
  const { runWords } = engine.kind;
  if (runWords === undefined) return findRights(engine, facts, image);
  const [run, text] = await Promise.all([
    engine.ask({ words: runWords, accepts: () => true }, signal),
    readFile(memory, "utf8").catch(() => ""),
  ]);
  const known = possibleRights(engine.kind, facts).find((rights) => run !== "" && text === memoryText(run, rights));
  if (known !== undefined) return known;
  const found = await findRights(engine, facts, image);
  // If writing fails, the next creation tests again.
  if (run !== "") await writeFile(memory, memoryText(run, found), { mode: 0o600 }).catch(() => {});
  return found;
}

const memoryText = (run: string, { words }: Rights): string => `${JSON.stringify({ run, words })}\n`;
