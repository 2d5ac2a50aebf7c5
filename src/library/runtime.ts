import { ClusterError } from "../errors.ts";
import {
  type Shape,
  anyText,
  callback,
  mappingOf,
  optional,
  readArguments,
} from "../model/read-arguments.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { Masker } from "../system/masker.ts";
import { messageBlock, shownText } from "../system/printable.ts";
import {
  type Environment,
  type OnStep,
  type Progress,
  type Runtime,
  type Step,
  StepChanges,
  systemClock,
} from "../system/runtime.ts";
import { libraryWords } from "./call-options.ts";

/** Options that every backend of the library takes besides its own. */
export interface RuntimeOptions {
  /**
   * Variables by name, as `backend/cloud/README.md` lists them: credentials, endpoints,
   * `XDG_STATE_HOME` (where keys and logs are kept). Default: the variables of the process. The
   * cloud's own packages read some of theirs, such as `AWS_CONFIG_FILE`, from the process in any
   * case.
   */
  readonly environment?: Environment;
  /**
   * Called with one printable line, without a newline and with secrets masked, for each step,
   * result, note and wait. If it throws, that becomes a warning of the process, the work goes on,
   * and it isn't called again. Default: no reports.
   */
  readonly onProgress?: (line: string) => void;
}

type Warn = (text: string) => void;

/**
 * Splits the options of a backend's constructor into those of the runtime and the backend's own.
 * Throws `bad-usage`.
 */
export function splitRuntimeOptions<Own extends object>(
  given: Own & RuntimeOptions,
  { env, emitWarning }: { readonly env: Environment; readonly emitWarning: Warn },
): { readonly runtime: Runtime; readonly own: Own } {
  // The reader of the backend's own options reports what isn't an object.
  if (Object(given) !== given) return { runtime: libraryRuntime({}, env), own: given };
  const { environment, onProgress, ...own } = given;
  const options = {
    ...(environment !== undefined && { environment }),
    ...(onProgress !== undefined && { onProgress }),
  };
  return { runtime: libraryRuntime(options, env, (text) => emitWarning(text)), own: own as Own };
}

export function libraryRuntime(
  given: RuntimeOptions,
  processEnvironment: Environment,
  warn?: Warn,
): Runtime {
  const { environment, onProgress } = readArguments(given, shape);
  return {
    environment: environment ?? processEnvironment,
    clock: systemClock,
    progress: new LineProgress(onProgress ?? (() => {}), warn),
  };
}

const shape: Shape<RuntimeOptions> = {
  environment: optional(mappingOf((value) => (value === undefined ? undefined : anyText(value)))),
  onProgress: optional(callback),
};

/**
 * Reports progress to a function, one printable line at a time and without secrets: the library has
 * no terminal of its own.
 */
export class LineProgress implements Progress {
  readonly #masker = new Masker();
  readonly #changes = new StepChanges();
  readonly #warn: Warn;
  #onLine: (line: string) => void;
  readonly #waiting = { text: "" };

  constructor(onLine: (line: string) => void, warn: Warn = () => {}) {
    this.#onLine = onLine;
    this.#warn = warn;
  }

  start(title: string, subject?: string): Step {
    const name = subject === undefined ? title : `${subject}: ${title}`;
    const state = { hasEnded: false };
    this.note(`${name} …`);
    const change = (course: "begun" | "done" | "failed"): void =>
      this.#changes.add({ title, subject, course, atMs: systemClock.now() });
    change("begun");
    const end = (outcome: string, course: "done" | "failed"): void => {
      if (state.hasEnded) return;
      this.note(`${name}: ${outcome}`);
      change(course);
      state.hasEnded = true;
    };
    return {
      update: () => {},
      done: (text = "done") => end(text, "done"),
      [Symbol.dispose]: () => end("failed", "failed"),
    };
  }

  waiting(text: string): void {
    if (text !== this.#waiting.text && text !== "") this.note(text);
    this.#waiting.text = text;
  }

  note(text: string): void {
    const shown = messageBlock(shownText(libraryWords(text), (given) => this.mask(given)));
    try {
      for (const line of shown.split("\n")) this.#onLine(line);
    } catch (error) {
      // Must not keep a removal from removing everything.
      this.#onLine = () => {};
      this.#warn(`onProgress failed, and is not called again: ${String(error)}`);
    }
  }

  warn(text: string): void {
    this.note(`Warning: ${text}`);
  }

  detail(): void {}

  hide(secret: string): void {
    this.#masker.hide(secret);
  }

  mask(text: string): string {
    return this.#masker.text(text);
  }

  logTo(_path: string, onStep?: OnStep): void {
    this.#changes.sendTo(onStep);
  }

  timings(): readonly [] {
    return [];
  }
}

/** Long enough to serve the next command of a test, short enough not to delay a program that has finished. */
const idleMs = 2_000;

/**
 * The connections to a cluster's nodes, for the holder of a Cluster. They stay open while in use
 * and a moment longer, so that consecutive commands share them and a program that has nothing left
 * to do ends by itself.
 */
export class SharedConnections implements AsyncDisposable {
  readonly #open: () => ConnectionPool;
  readonly #state = {
    pool: undefined as ConnectionPool | undefined,
    users: 0,
    timer: undefined as ReturnType<typeof setTimeout> | undefined,
    isOver: false,
  };

  constructor(open: () => ConnectionPool) {
    this.#open = open;
  }

  /** Fails as `cluster-not-found` from the beginning of the destruction on, even if that fails. */
  async use<Result>(work: (connections: ConnectionPool) => Promise<Result>): Promise<Result> {
    if (this.#state.isOver) {
      throw new ClusterError("cluster-not-found", "`destroy` was called for this cluster.", {
        hint: "If it failed, call it again, or find the cluster again to use it.",
      });
    }
    clearTimeout(this.#state.timer);
    this.#state.users += 1;
    this.#state.pool ??= this.#open();
    try {
      return await work(this.#state.pool);
    } finally {
      this.#state.users -= 1;
      if (this.#state.users === 0 && !this.#state.isOver) this.#closeLater();
    }
  }

  #closeLater(): void {
    this.#state.timer = setTimeout(() => {
      // These connections are no longer in use, so errors while closing them don't matter.
      this.#close().catch(() => {});
    }, idleMs);
  }

  async #close(): Promise<void> {
    const { pool } = this.#state;
    this.#state.pool = undefined;
    await pool?.[Symbol.asyncDispose]();
  }

  /**
   * Ends all connections, because their nodes are replaced. The next use opens new ones. Work in
   * progress fails as `connection-failed`.
   */
  async reset(): Promise<void> {
    clearTimeout(this.#state.timer);
    await this.#close();
  }

  /** Work in progress fails as `connection-failed`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state.isOver = true;
    clearTimeout(this.#state.timer);
    await this.#close();
  }
}
