/** The shape of a row in the tables: where something goes wrong, and what must be true afterwards. */
import type { Ended } from "../e2e/support/executable.ts";

/** Where a fault is injected. */
type Place = "api" | "engine" | "qemu" | "machine" | "way" | "artifact" | "computer";

/** Something that a command creates and must not leave behind. */
export interface Thing {
  readonly kind: "machine" | "group" | "volume" | "network" | "image" | "process" | "file";
  /** The name that messages use for it. */
  readonly id: string;
}

/** A text that must not contain a secret. */
export interface Exhibit {
  readonly where: string;
  readonly text: string;
}

export interface Expected {
  /** The exit code, or the signal that ends the program. After SIGKILL it can announce nothing. */
  readonly status: number | "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGKILL";
  /** The error id; undefined: no error is reported. */
  readonly id?: string;
  /** What the output must contain: the cause. */
  readonly says: readonly (string | RegExp)[];
  /** What it must not contain. */
  readonly hides?: readonly (string | RegExp)[];
  /** Whether the cluster is there afterwards. */
  readonly keepsCluster: boolean;
  /** The command must have ended by then. */
  readonly withinMs?: number;
}

/** A backend for one fault alone: a cloud, an engine or QEMU, with a state folder and a folder for temporary files. */
export interface World extends AsyncDisposable {
  readonly folder: string;
  readonly stateFolder: string;
  readonly temporaryFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Texts that must appear only where they belong. */
  readonly secrets: readonly string[];
  /** The words that create the cluster. */
  readonly createWords: readonly string[];
  /** How long things that are being removed may still exist. */
  readonly settleMs: number;
  /** Runs the backend's program in the folder. */
  run(words: readonly string[], changes?: RunChanges): Promise<Ended>;
  /** Everything in the backend, except the cluster if it is meant to exist. */
  leftovers(keepsCluster: boolean): Promise<readonly Thing[]>;
  /** Ends the cluster as its user or its deadline would. */
  endCluster(): Promise<void>;
  /** The backend's own texts that must not contain a secret, such as the commands that nodes received. */
  exhibits(): Promise<readonly Exhibit[]>;
}

export interface RunChanges {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly limitMs?: number;
}

/** A fault that has been injected. Disposing of it ends it. */
export interface Struck extends AsyncDisposable {
  /** Whether the command has met it. */
  hasStruck(): boolean;
}

export interface Fault<Bench extends World> {
  readonly name: string;
  readonly place: Place;
  /** About how long it takes. */
  readonly seconds?: number;
  /** Why it cannot be injected on this machine; undefined if it can. */
  readonly lack?: string | undefined;
  /** Whether the cluster exists before the fault strikes. */
  readonly needsCluster?: true;
  /** Injects the fault. Disposing of the result ends it. */
  readonly strike?: (world: Bench) => Promise<Struck>;
  /** The command that meets the fault; default: the creation. */
  readonly act?: (world: Bench) => Promise<Ended>;
  readonly expected: Expected;
}

/** What was observed when a fault was injected. */
export interface Evidence {
  readonly expected: Expected;
  readonly ended: Ended;
  readonly tookMs: number;
  readonly hasStruck: boolean;
  /** Everything that exists after the fault, without the cluster if that is kept. */
  readonly left: readonly Thing[];
  /** The next creation of the same id, and everything that exists after it besides its cluster. */
  readonly next: Ended;
  readonly leftAfterNext: readonly Thing[];
  readonly secrets: readonly string[];
  readonly exhibits: readonly Exhibit[];
}
