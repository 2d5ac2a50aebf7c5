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
export const noColours: Colours = {
  bold: same,
  dim: same,
  red: same,
  green: same,
  yellow: same,
  cyan: same,
};

/** Whether lines can be redrawn on this terminal. */
export function isLive(environment: Environment): boolean {
  const ci = variable(environment, "CI") ?? "false";
  return variable(environment, "TERM") !== "dumb" && ["false", "0"].includes(ci);
}

/** https://no-color.org: colour is off if the variable is set and not empty, whatever its value. */
export function isColoured(environment: Environment): boolean {
  return isLive(environment) && variable(environment, "NO_COLOR") === undefined;
}

const painted =
  (begin: number, end: number): Paint =>
  (text) =>
    `\x1b[${begin}m${text}\x1b[${end}m`;

/**
 * https://en.wikipedia.org/wiki/ANSI_escape_code#Select_Graphic_Rendition_parameters. Not from a
 * package: those touch `process.stdout`; see `openOutput`.
 */
export const terminalColours: Colours = {
  bold: painted(1, 22),
  dim: painted(2, 22),
  red: painted(31, 39),
  green: painted(32, 39),
  yellow: painted(33, 39),
  cyan: painted(36, 39),
};
