import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { type ChaosRequest, runChaos } from "../../cluster/faults/chaos.ts";
import type { ChaosOptions } from "../../cluster/faults/chaos-plan.ts";
import { messageOf } from "../../errors.ts";
import { chaosText } from "../fault/chaos-text.ts";
import { ShardProgress } from "./shard-progress.ts";

export type Chaos = Omit<ChaosRequest, "durationMs" | "onShown">;

/** Names the seed in titles. */
export const chaosTitle = (chaos: ChaosOptions | undefined): string =>
  chaos === undefined ? "" : ` (chaos with seed ${chaos.seed})`;

/**
 * Runs a command while faults begin and heal. When it has ended, heals the present fault, unless that is to be
 * abandoned. Warns at once if the faults fail, and at the end if the command succeeded before a fault showed. Resolves
 * with the command's status. Throws why the faults failed, or the cluster did not recover, unless the command failed as well.
 */
export async function withChaos(
  backend: Backend<unknown>,
  chaos: Chaos,
  context: Context,
  command: () => Promise<number>,
): Promise<number> {
  const { progress, clock } = context;
  const { options } = chaos;
  const own = new ShardProgress(progress, { name: "chaos", waits: new Map(), clock });
  // The screen is the command's.
  own.waiting = () => {};
  const text = chaosText(options);
  progress.note(`Chaos: ${text}`);
  const ending = new AbortController();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  const failures: unknown[] = [];
  const state = { hasShown: false };
  const onShown = (): void => void (state.hasShown = true);
  const running = runChaos({ ...context, progress: own, signal }, backend, { ...chaos, onShown });
  const ended = running.catch((error: unknown) => {
    if (signal.aborted) return;
    failures.push(error);
    progress.warn(`Chaos failed, and no other fault begins: ${messageOf(error)}`);
  });
  try {
    const status = await command();
    if (status !== 0) return status;
    if (failures.length > 0) throw failures[0];
    if (!state.hasShown)
      progress.warn(
        "The command ended before the first fault showed, so its success says nothing about faults. Let it take longer.",
      );
    return status;
  } finally {
    ending.abort(new Error("The command has ended."));
    await ended;
    progress.note(`Chaos had seed ${options.seed}. To repeat it, pass --chaos ${text}`);
  }
}
