import { readFileSync } from "node:fs";
import { messageOf } from "../errors.ts";
import { Interrupted, type ProcessLike } from "./command.ts";

type SignalName = Interrupted["signalName"];

const exitCodes: Readonly<Record<SignalName, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

interface Listeners {
  /** Called on the first signal: cleanup begins. */
  readonly onFirst: () => void;
  /** Called on a further signal. The program ends when it returns. Receives the texts registered with `onAbandon`. */
  readonly onAbandoned: (remains: readonly string[]) => void;
  readonly onCrash: () => void;
}

/** Turns signals into an aborted `AbortSignal`, and raises the signal again when the program ends. */
export class Interrupts {
  readonly #host: ProcessLike;
  readonly #listeners: Listeners;
  readonly #controller = new AbortController();
  readonly #remains = new Set<() => string>();
  readonly #handlers: ReadonlyMap<SignalName, () => void>;
  readonly #crashes: PromiseRejectedResult[] = [];
  readonly #onCrash = (error: unknown): void => {
    this.#crashes.push({ status: "rejected", reason: error });
    // The work in progress gets a chance to clean up. Errors that it throws then are not the original error.
    this.#controller.abort(error);
    this.#listeners.onCrash();
  };

  constructor(host: ProcessLike, listeners: Listeners) {
    this.#host = host;
    this.#listeners = listeners;
    const names: readonly SignalName[] = isHangupIgnored()
      ? ["SIGINT", "SIGTERM"]
      : ["SIGINT", "SIGTERM", "SIGHUP"];
    this.#handlers = new Map(names.map((name) => [name, () => this.#receive(name)]));
    for (const [name, handler] of this.#handlers) host.on(name, handler);
    host.on("uncaughtException", this.#onCrash);
    host.on("unhandledRejection", this.#onCrash);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first uncaught error; undefined if there was none. */
  get crash(): PromiseRejectedResult | undefined {
    return this.#crashes[0];
  }

  get interruption(): Interrupted | undefined {
    const reason: unknown = this.signal.reason;
    return reason instanceof Interrupted ? reason : undefined;
  }

  onAbandon(describe: () => string): Disposable {
    // A separate wrapper, so that a function registered twice and disposed of once stays registered once.
    const entry = (): string => describe();
    this.#remains.add(entry);
    return { [Symbol.dispose]: () => void this.#remains.delete(entry) };
  }

  close(): void {
    for (const [name, handler] of this.#handlers) this.#host.off(name, handler);
    this.#host.off("uncaughtException", this.#onCrash);
    this.#host.off("unhandledRejection", this.#onCrash);
  }

  /** Ends the process by the signal, so that a shell sees the cause and a loop around the program ends too. */
  raise(name: SignalName): void {
    this.close();
    // Only visible if the signal does not end the process after all, for example because it is blocked.
    this.#host.exitCode = exitCodes[name];
    this.#host.kill(this.#host.pid, name);
  }

  #receive(name: SignalName): void {
    if (!this.signal.aborted) {
      this.#controller.abort(new Interrupted(name));
      this.#listeners.onFirst();
      return;
    }
    this.#listeners.onAbandoned(
      [...this.#remains].map(describeSafely).filter((text) => text !== ""),
    );
    this.raise(name);
  }
}

function describeSafely(describe: () => string): string {
  try {
    return describe();
  } catch (error) {
    return `Cannot tell what is left: ${messageOf(error)}`;
  }
}

/** Under `nohup`, SIGHUP is ignored and must stay ignored; our handler would undo that. Only Linux reports it. */
function isHangupIgnored(): boolean {
  try {
    const mask = /^SigIgn:\s*(?<mask>[0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))
      ?.groups?.["mask"];
    return (BigInt(`0x${mask ?? "0"}`) & 1n) === 1n;
  } catch {
    return false;
  }
}
