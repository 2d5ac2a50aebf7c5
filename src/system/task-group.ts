/**
 * Tasks that succeed or fail together. The first failure aborts the signal of all others, with the error as its reason.
 * Disposing of the group aborts the tasks that are still running, and resolves when every task has ended.
 */
export class TaskGroup implements AsyncDisposable {
  /** Aborted with the outer signal, or by the first failure. */
  readonly signal: AbortSignal;
  readonly #outer: AbortSignal;
  readonly #failing = new AbortController();
  readonly #tasks: Promise<void>[] = [];
  readonly #failures: unknown[] = [];

  constructor(signal: AbortSignal) {
    this.#outer = signal;
    this.signal = AbortSignal.any([signal, this.#failing.signal]);
  }

  start(task: (signal: AbortSignal) => Promise<void>): void {
    const running = task(this.signal).catch((error: unknown) => {
      this.#failures.push(error);
      this.#failing.abort(error);
    });
    this.#tasks.push(running);
  }

  /**
   * Ends all tasks. Returns `error`, or what a task says that a time limit, the outer signal's reason, has interrupted.
   */
  async explain(error: unknown): Promise<unknown> {
    await this[Symbol.asyncDispose]();
    if (!this.#outer.aborted || error !== this.#outer.reason) return error;
    return this.#failures.find((failure) => failure instanceof Error && failure.cause === error) ?? error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#failing.abort(new DOMException("The other tasks have ended", "AbortError"));
    await Promise.all(this.#tasks);
  }
}
