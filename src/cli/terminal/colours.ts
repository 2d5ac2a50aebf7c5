import type { Environment } from "../../system/environment.ts";

type Paint = (text: string) => string;

export interface Colours {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
}

const same: Paint = (text) => text;
export const noColours: Colours = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

/** Whether lines may be drawn over again on this terminal. */
export function isLive(environment: Environment): boolean {
  const ci = environment["CI"] ?? "";
  return environment["TERM"] !== "dumb" && (ci === "" || ci === "false" || ci === "0");
}

/** https://no-color.org: set and not empty, whatever the value. */
export function isColoured(environment: Environment): boolean {
  return isLive(environment) && (environment["NO_COLOR"] ?? "") === "";
}

/** Loaded only where colour is wanted: kleur reads `process.stdout` when it loads, which costs a third of the program's start. */
export async function loadColours(): Promise<Colours> {
  const { default: kleur } = await import("kleur");
  // The decision was made with `isColoured`, about stderr; kleur's own looks at stdout.
  kleur.enabled = true;
  const { bold, dim, red, green, yellow, cyan } = kleur;
  return { bold, dim, red, green, yellow, cyan };
}
