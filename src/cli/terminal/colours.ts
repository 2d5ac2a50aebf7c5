import type { Environment } from "../../system/runtime.ts";
import { variable } from "../../system/variable.ts";

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
  const ci = variable(environment, "CI") ?? "false";
  return variable(environment, "TERM") !== "dumb" && ["false", "0"].includes(ci);
}

/** https://no-color.org: colour is off if the variable is set and not empty, whatever its value. */
export function isColoured(environment: Environment): boolean {
  return isLive(environment) && variable(environment, "NO_COLOR") === undefined;
}

/** Loaded only if colour is wanted: kleur reads `process.stdout` when it loads, which takes a third of the program's start time. */
export async function loadColours(): Promise<Colours> {
  const { default: kleur } = await import("kleur");
  // `isColoured` has already decided, for stderr. kleur's own decision is based on stdout.
  kleur.enabled = true;
  const { bold, dim, red, green, yellow, cyan } = kleur;
  return { bold, dim, red, green, yellow, cyan };
}
