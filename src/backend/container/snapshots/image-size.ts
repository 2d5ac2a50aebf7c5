import type { Engine } from "../engine/engine.ts";

const unitBytes: Readonly<Record<string, number>> = { "": 1, B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Returns the bytes that an image's last step added; 0 if the engine doesn't say. */
export async function ownBytes(engine: Engine, image: string, signal: AbortSignal): Promise<number> {
  const text = await engine.ask({ words: ["history", "--format={{.Size}}", image], accepts: () => true }, signal);
  return parseSize(text.split("\n")[0] ?? "");
}

/** Reads `4.61 kB` (Podman) or `4.61kB` (Docker). */
export function parseSize(text: string): number {
  const [, number, unit = ""] = /^([0-9.]+) ?([kKMGT]?B?)$/.exec(text) ?? [];
  return Math.round(Number(number ?? 0) * (unitBytes[unit] ?? 0));
}
