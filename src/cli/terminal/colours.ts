import type { Environment } from "../../system/runtime.ts";

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

/** Whether lines can be redrawn on this terminal. */
export function isLive(environment: Environment): boolean {
  const ci = environment["CI"] ?? "";
  return environment["TERM"] !== "dumb" && (ci === "" || ci === "false" || ci === "0");
}

/** https://no-color.org: colour is off if the variable is set and not empty, whatever its value. */
export function isColoured(environment: Environment): boolean {
  return isLive(environment) && (environment["NO_COLOR"] ?? "") === "";
}

/** Loaded only if colour is wanted: kleur reads `process.stdout` when it loads, which takes a third of the program's start time. */
export async function loadColours(): Promise<Colours> {
  const { default: kleur } = await import("kleur");
  // `isColoured` has already decided, for stderr. kleur's own decision is based on stdout.
  kleur.enabled = true;
  const { bold, dim, red, green, yellow, cyan } = kleur;
  return { bold, dim, red, green, yellow, cyan };
}
