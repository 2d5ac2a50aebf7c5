import { outsideLines } from "../../system/printable.ts";
import type { Runtime } from "../../system/runtime.ts";
import { orAborted } from "../../system/time-limit.ts";
import type { RemoteCommand } from "../connection/connection.ts";
import { shellText } from "../shell-text.ts";
import listHolders from "./list-holders.sh" with { type: "text" };
import type { Mark } from "./node-marks.ts";

export type CommandEnd = Extract<Mark, { kind: "end" }>;

interface Watched extends Pick<Runtime, "clock" | "progress"> {
  /** The node's name. */
  readonly name: string;
  /** Resolves with the command's end, which may be never. */
  readonly ended: Promise<CommandEnd>;
  /** Runs another command on the node. */
  readonly run: (
    command: RemoteCommand,
    signal: AbortSignal,
  ) => Promise<{ readonly stdout: string }>;
}

/**
 * A command's output lasts as long as any process holds it. If only those that the command has left
 * do, the user learns which, until the disposal.
 */
export function noteHeldOutput({ name, ended, run, clock, progress }: Watched): Disposable {
  const over = new AbortController();
  const say = async ({ status, outputs }: CommandEnd): Promise<void> => {
    const argv = ["sh", "-c", shellText(listHolders), "e2e-list-holders", ...outputs];
    const command = { argv, sudo: true, limitMs: probeLimitMs };
    const { stdout } = await run(command, over.signal).catch(() => ({ stdout: "" }));
    if (over.signal.aborted) return;
    const names = outsideLines(stdout, mostHolders).join(", ");
    const holders =
      names === "" ? "A process that it started" : `A process that it started (${names})`;
    progress.note(`${name}: the command ${heldText(status, holders)}`);
  };
  const watch = async (): Promise<void> => {
    const end = await orAborted(ended, over.signal);
    await clock.sleep(heldOutputMs, over.signal);
    await say(end);
  };
  watch().catch(() => {});
  return { [Symbol.dispose]: () => over.abort(new Error("the command is over")) };
}

/** What a command did whose output another process keeps open, after its name. */
export const heldText = (status: number, holder: string): string =>
  `has ended with status ${status}. ${holder} still holds its output open; waiting until that ends too. Redirect such a process's output to avoid this.`;

const mostHolders = 5;
const heldOutputMs = 5_000;
const probeLimitMs = 60_000;
