/**
 * Marks are lines that our shell text prints on a node among a command's output. Only they prove that the command has
 * begun, and how it has ended: a login shell's start-up files may end it before, and sshd may run another program
 * instead. A mark begins with a control character that stands in no shell text, so that a login shell which prints what
 * it reads or runs cannot print a mark.
 */
const markStart = "\u001e";

export type Mark =
  /** Printed by the login shell: the id of the process group, by which the command can be ended. */
  | { readonly kind: "group"; readonly processId: number }
  /** Printed on both streams as the right user, just before the command. Everything ahead of it is noise. */
  | { readonly kind: "begun" }
  /** Printed when the command has ended. `outputs` are the files behind stdout and stderr, as in /proc. */
  | { readonly kind: "end"; readonly status: number; readonly outputs: readonly string[] }
  /** Printed on both streams by a root shell that waits for a line: the status of the line before. */
  | { readonly kind: "over"; readonly status: number };

interface Reading {
  readonly token: string;
  readonly onMark: (mark: Mark) => void;
  /** Receives the command's own output. */
  readonly onOutput: (text: string) => void;
  /** Whether nothing is looked for once the command has begun. */
  readonly endsAtBegin: boolean;
}

const mostNoise = 4 * 1024;
const longestMark = 300;

/** Reads the output of one stream. Output after a mark that came late is not lost: each mark is looked for anywhere. */
export function createMarkReader({ token, onMark, onOutput, endsAtBegin }: Reading) {
  const prefix = `${markStart}${token} `;
  const state: { held: string; noise: string | undefined } = { held: "", noise: "" };
  const pass = (text: string): void => {
    if (text === "") return;
    if (state.noise === undefined) onOutput(text);
    else state.noise = (state.noise + text).slice(-mostNoise);
  };
  const take = (mark: Mark): void => {
    if (mark.kind === "begun") state.noise = undefined;
    onMark(mark);
  };
  return {
    add: (text: string): void => {
      if (endsAtBegin && state.noise === undefined) return onOutput(text);
      let rest = state.held + text;
      for (;;) {
        const start = rest.indexOf(prefix);
        if (start < 0) break;
        const line = /^[^\n]*\n/.exec(rest.slice(start, start + longestMark))?.[0];
        if (line === undefined && rest.length - start < longestMark) break;
        const mark = line === undefined ? undefined : readMark(line.slice(prefix.length));
        const end = start + (mark === undefined ? prefix.length : (line ?? "").length);
        pass(rest.slice(0, mark === undefined ? end : start));
        rest = rest.slice(end);
        if (mark !== undefined) take(mark);
        if (endsAtBegin && state.noise === undefined) {
          state.held = "";
          return pass(rest);
        }
      }
      const heldFrom = possibleMark(rest, prefix);
      state.held = rest.slice(heldFrom);
      pass(rest.slice(0, heldFrom));
    },
    /** No more text will come. */
    end: () => {
      pass(state.held);
      state.held = "";
    },
    /** The last part of what came before the command; undefined once it has begun. */
    noise: () => state.noise,
  };
}

/** Returns where a mark begins whose rest may still come. */
function possibleMark(text: string, prefix: string): number {
  const whole = text.indexOf(prefix);
  if (whole >= 0) return whole;
  const start = text.lastIndexOf(markStart);
  return start >= 0 && prefix.startsWith(text.slice(start)) ? start : text.length;
}

/** A terminal ends lines with a carriage return as well. */
function readMark(text: string): Mark | undefined {
  const [kind, number, ...outputs] = text.trimEnd().split(" ");
  if (kind === "begun" && number === undefined) return { kind };
  if (number === undefined || !/^\d{1,10}$/.test(number)) return undefined;
  if (kind === "group") return { kind, processId: Number(number) };
  if (Number(number) > 255) return undefined;
  if (kind === "over") return { kind, status: Number(number) };
  if (kind !== "end") return undefined;
  return {
    kind,
    status: Number(number),
    outputs: outputs.filter((each) => /^(?:pipe|socket):\[\d+\]$/.test(each)),
  };
}

/** Returns shell text that prints a mark on stdout, with words in which the shell puts its own values. */
export const printMark = (token: string, words: string): string =>
  `printf '\\036%s\\n' "${token} ${words}"`;

export const printBegun = (token: string): string =>
  `${printMark(token, "begun")}; ${printMark(token, "begun")} >&2`;
