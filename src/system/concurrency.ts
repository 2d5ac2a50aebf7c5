import { type Work, endedBy } from "./runtime.ts";

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

/**
 * Runs `task` for every item, at most `limit` at once, and resolves with the results in the items' order. After the
 * first failure no further task begins. Tasks in progress are awaited, then the first failure is thrown. An aborted
 * signal counts as a failure.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: unknown[] = [];
  const pending = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of pending) {
      if (failures.length > 0) return;
      try {
        signal.throwIfAborted();
        results[index] = await task(item, index);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}

/** Tasks that succeed or fail together; see withTasks. */
export interface TaskGroup<Part> {
  /** Its signal is aborted with that of the whole work, or by the first failure, with the error as its reason. */
  readonly work: Part;
  start<Result>(task: (part: Part) => Promise<Result>): Task<Result>;
}

export interface Task<Result> {
  /** Resolves or rejects as the task does. Nobody has to call it: the group keeps the failure as well. */
  result(): Promise<Result>;
}

type Outcome<Result> = { readonly value: Result } | { readonly error: unknown };

/**
 * Runs `body`, which starts tasks in the group, as parts of the work. The first failure, of the
 * body or of a task, aborts all others. Resolves or rejects only when every task has ended: with
 * the body's result, which aborts the tasks that still run, or with the first failure. If the
 * work's signal aborts, it rejects with the signal's reason, or with what the body or a task adds
 * to that (see whileWaitingFor): of several tasks, the one that was started first.
 */
export async function withTasks<Part extends Pick<Work, "signal">, Result>(
  work: Part,
  body: (tasks: TaskGroup<Part>) => Promise<Result>,
): Promise<Result> {
  const outer = work.signal;
  const ending = new AbortController();
  const part = endedBy(work, ending);
  const { signal } = part;
  const running: Promise<Outcome<unknown>>[] = [];
  const settle = async <Value>(task: (inner: Part) => Promise<Value>): Promise<Outcome<Value>> => {
    try {
      return { value: await task(part) };
    } catch (error) {
      ending.abort(error);
      return { error };
    }
  };
  const start: TaskGroup<Part>["start"] = (task) => {
    const outcome = settle(task);
    running.push(outcome);
    return { result: async () => valueOf(await outcome) };
  };
  const ended = await settle(async () => body({ work: part, start }));
  const hasFailed = signal.aborted;
  ending.abort(new DOMException("The other tasks have ended", "AbortError"));
  const outcomes: Outcome<unknown>[] = [];
  // A task may start others until it has ended.
  for (const outcome of running) outcomes.push(await outcome);
  if (!hasFailed) return valueOf(ended);
  if (!outer.aborted || signal.reason !== outer.reason) throw signal.reason;
  throw interruption([ended, ...outcomes], outer.reason);
}

function valueOf<Value>(outcome: Outcome<Value>): Value {
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** Returns what the first of these says that the abort has interrupted. */
function interruption([body, ...tasks]: readonly Outcome<unknown>[], reason: unknown): unknown {
  if (body !== undefined && "error" in body && body.error !== reason) return body.error;
  const errors = tasks.map((outcome) => ("error" in outcome ? outcome.error : undefined));
  return errors.find((error) => error instanceof Error && error.cause === reason) ?? reason;
}

/** Waits for both, even after one fails: when this has failed, neither may still be running. */
export async function both<One, Other>(
  one: Promise<One>,
  other: Promise<Other>,
): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

/** Calls `ask` on the first call only. Later calls get the same answer or the same failure. */
export function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  const cached: { answer?: Promise<Value> } = {};
  return () => (cached.answer ??= ask());
}
