import { readFile, writeFile } from "node:fs/promises";
import type { Engine } from "../engine/engine.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { findRights, possibleRights, type Rights } from "./system-flags.ts";

/**
 * What containers are allowed, tried at the first creation only: a trial takes most of a second, and nothing else can begin meanwhile. `memory`, a
 * file, keeps the answer for as long as the engine runs, where that can be told from its next run.
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
  // Without it, the next creation tries again.
  if (run !== "") await writeFile(memory, memoryText(run, found), { mode: 0o600 }).catch(() => {});
  return found;
}

const memoryText = (run: string, { words }: Rights): string => `${JSON.stringify({ run, words })}\n`;
