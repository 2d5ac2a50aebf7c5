/** Tasks that succeed or fail together; see withTasks. */
export interface TaskGroup {
  /** Aborted with the outer signal, or by the first failure, with the error as its reason. */
  readonly signal: AbortSignal;
  start<Result>(task: (signal: AbortSignal) => Promise<Result>): Task<Result>;
}

export interface Task<Result> {
  /** Resolves or rejects as the task does. Nobody has to call it: the group keeps the failure as well. */
  result(): Promise<Result>;
}

type Outcome<Result> = { readonly value: Result } | { readonly error: unknown };

/**
 * Runs `body`, which starts tasks in the group. The first failure, of the body or of a task, aborts all others. Resolves or rejects only when every
 * task has ended: with the body's result, which aborts the tasks that still run, or with the first failure. If the outer signal aborts, it rejects
 * with the signal's reason, or with what the body or a task adds to that (see whileWaitingFor): of several tasks, the one that was started first.
 */
export async function withTasks<Result>(
  body: (tasks: TaskGroup) => Promise<Result>,
  outer: AbortSignal,
): Promise<Result> {
  const ending = new AbortController();
  const signal = AbortSignal.any([outer, ending.signal]);
  const running: Promise<Outcome<unknown>>[] = [];
  const settle = async <Value>(task: (inner: AbortSignal) => Promise<Value>): Promise<Outcome<Value>> => {
    try {
      return { value: await task(signal) };
    } catch (error) {
      ending.abort(error);
      return { error };
    }
  };
  const start: TaskGroup["start"] = (task) => {
    const outcome = settle(task);
    running.push(outcome);
    return { result: async () => valueOf(await outcome) };
  };
  const ended = await settle(async () => body({ signal, start }));
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
