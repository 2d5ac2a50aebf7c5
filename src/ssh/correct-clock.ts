import { ClusterError } from "../errors.ts";
import { outsideReason } from "../system/printable.ts";
import type { Clock, Work } from "../system/runtime.ts";
import { commandLimitMs, type Connection } from "./connection/connection.ts";
import correctClockFile from "./correct-clock.sh" with { type: "text" };
import { shellText } from "./shell-text.ts";

/** Where a node keeps its faults: in memory, because a restart of the node ends them all. */
export const faultsFolder = "/run/cluster-e2e-faults";

/** Two nodes this close to us are within 50 ms of each other. */
const closeMs = 20;
/** More than this is worth a word. */
const mostMs = 100;
/** Each set starts a program, which takes another time whenever the computer is busy. */
const mostSets = 12;
const samples = 5;

interface Measurement {
  /** How far the node's clock is ahead of ours, apart from what faults have set it ahead. */
  readonly offsetMs: number;
  /** The measurement is wrong by half of it at most. */
  readonly roundTripMs: number;
}

/**
 * Sets a node's clock by ours, by measured differences: whatever is computed here and set there is
 * late by the time of the way, and of a program's start. A clock that is right already isn't
 * touched, and one that a fault has set wrong stays wrong by as much. Resolves with what it found
 * at the end. Throws `remote-command-failed` if the node refuses.
 */
export async function correctClock(
  { clock, progress, signal }: Pick<Work, "clock" | "progress" | "signal">,
  connection: Pick<Connection, "run">,
  name: string,
): Promise<Measurement> {
  const talk = new Talk();
  const argv = [
    "sh",
    "-c",
    'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi',
    "e2e-clock",
    shellText(correctClockFile, { FAULTS: faultsFolder }),
  ];
  const request = {
    argv,
    sudo: true,
    stdin: talk.lines(),
    limitMs: commandLimitMs,
    task: "setting its clock",
    isOutputHidden: true,
  };
  const running = connection.run({ ...request, onOutput: talk.hear }, signal);
  const ended = running.then(({ status, stderr }) => {
    throw refused(name, outsideReason(stderr) || `its shell exited with ${status}`);
  });
  try {
    const found = await Promise.race([correct(async (word) => talk.say(word), name, clock), ended]);
    const text = `The clock of ${name} differs by ${Math.round(found.offsetMs)} ms, measured within ${Math.round(found.roundTripMs)} ms.`;
    if (Math.abs(found.offsetMs) > mostMs) progress.note(text);
    else progress.detail(2, text);
    return found;
  } finally {
    talk.end();
    await running.catch(() => {});
    await ended.catch(() => {});
  }
}

async function correct(
  say: (word: string) => Promise<string>,
  name: string,
  clock: Pick<Clock, "now">,
): Promise<Measurement> {
  // How late a set takes effect, as far as earlier ones have shown.
  let lateMs = 0;
  // What the last measurement may have missed is no sign of that.
  let missedMs = 0;
  for (let sets = 0; ; sets += 1) {
    const found = await measure(say, clock);
    const { offsetMs, roundTripMs } = found;
    if (!Number.isFinite(offsetMs)) throw refused(name, "it does not tell the time");
    if (Math.abs(offsetMs) <= closeMs || sets === mostSets) return found;
    if (sets > 0 && Math.abs(offsetMs) > missedMs) lateMs -= offsetMs / sets;
    missedMs = roundTripMs / 2;
    const shift = BigInt(Math.round((lateMs - offsetMs) * 1000)) * 1000n;
    if ((await say(String(shift))) !== "set") throw refused(name, "date does not set it");
  }
}

/** Measures as NTP does: the quickest answer tells most. */
async function measure(
  say: (word: string) => Promise<string>,
  clock: Pick<Clock, "now">,
): Promise<Measurement> {
  let best: Measurement = { offsetMs: Number.NaN, roundTripMs: Infinity };
  for (let times = 0; times < samples; times += 1) {
    const before = clock.now();
    const [, time, aheadSeconds = 0] = answerShape.exec(await say("ask")) ?? [];
    const nodeMs = (Number(time) - Number(aheadSeconds)) * 1000;
    const after = clock.now();
    const found = { offsetMs: nodeMs - (before + after) / 2, roundTripMs: after - before };
    if (!(found.roundTripMs >= best.roundTripMs)) best = found;
  }
  return best;
}

const answerShape = /^(\d{1,12}(?:\.\d{0,9})?)(?: (-?\d{1,9}))?$/;
const longestAnswer = 100;

/** Lines to a command, and the line with which it answers each. */
class Talk {
  #next = Promise.withResolvers<string | undefined>();
  #answer = Promise.withResolvers<string>();
  #heard = "";

  async *lines(): AsyncGenerator<Uint8Array> {
    for (let line = await this.#next.promise; line !== undefined; line = await this.#next.promise) {
      this.#next = Promise.withResolvers();
      yield Buffer.from(`${line}\n`);
    }
  }

  readonly hear = (stream: "stdout" | "stderr", chunk: string): void => {
    if (stream === "stderr") return;
    this.#heard = `${this.#heard}${chunk}`.slice(0, longestAnswer);
    const end = this.#heard.indexOf("\n");
    if (end === -1) return;
    const line = this.#heard.slice(0, end);
    this.#heard = "";
    this.#answer.resolve(line);
  };

  async say(line: string): Promise<string> {
    this.#answer = Promise.withResolvers();
    this.#next.resolve(line);
    return await this.#answer.promise;
  }

  end(): void {
    this.#next.resolve(undefined);
  }
}

const refused = (name: string, why: string): ClusterError =>
  new ClusterError("remote-command-failed", `The clock of ${name} cannot be set: ${why}.`, {
    facts: { node: name },
  });
