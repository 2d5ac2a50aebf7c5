/** Limits the number of concurrent tasks: later callers wait, in order, until a task has ended. */
export interface Semaphore {
  /** Runs the task when its turn comes. Rejects with the signal's reason if the signal aborts before that. */
  run<Result>(task: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

export function createSemaphore(limit: number): Semaphore {
  const waiting: (() => void)[] = [];
  const taken = { count: 0 };

  const turn = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const onTurn = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        waiting.splice(waiting.indexOf(onTurn), 1);
        reject(signal.reason);
      };
      waiting.push(onTurn);
      signal.addEventListener("abort", onAbort, { once: true });
    });

  return {
    run: async (task, signal) => {
      signal.throwIfAborted();
      if (taken.count < limit) taken.count += 1;
      else await turn(signal);
      try {
        return await task();
      } finally {
        // The turn passes directly to the next caller, so that nobody can slip in between.
        const next = waiting.shift();
        if (next === undefined) taken.count -= 1;
        else next();
      }
    },
  };
}
