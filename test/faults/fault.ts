/** What a row of the campaign's table says: where something goes wrong, and what must be true afterwards. */
import type { Ended } from "../e2e/support/executable.ts";

/** Where a fault is injected. */
type Place = "api" | "engine" | "qemu" | "machine" | "way" | "artifact" | "computer";

/** Something that a command makes and that must not stay behind. */
export interface Thing {
  readonly kind: "machine" | "group" | "volume" | "network" | "process" | "file";
  /** As a message would name it. */
  readonly id: string;
}

/** A text that must hold no secret. */
export interface Exhibit {
  readonly where: string;
  readonly text: string;
}

export interface Expected {
  /** The exit code, or the signal that ends the program. After SIGKILL it can announce nothing. */
  readonly status: number | "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGKILL";
  /** The error id; undefined: no error is reported. */
  readonly id?: string;
  /** What the output must say, which names the cause. */
  readonly says: readonly (string | RegExp)[];
  /** What it must not say. */
  readonly hides?: readonly (string | RegExp)[];
  /** Whether the cluster is there afterwards. */
  readonly keepsCluster: boolean;
  /** The command must have ended by then. */
  readonly withinMs?: number;
}

/** One backend with nothing on it but what one fault's commands make: the cloud, engine or QEMU, a state folder, a folder for temporary files. */
export interface World extends AsyncDisposable {
  readonly folder: string;
  readonly stateFolder: string;
  readonly temporaryFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Texts that may appear nowhere but where they belong. */
  readonly secrets: readonly string[];
  /** The words that create the cluster. */
  readonly createWords: readonly string[];
  /** How long things that are going may take to be gone. */
  readonly settleMs: number;
  /** Runs the backend's program in the folder. */
  run(words: readonly string[], changes?: RunChanges): Promise<Ended>;
  /** All that the backend holds beyond the cluster, if there is to be one. */
  leftovers(keepsCluster: boolean): Promise<readonly Thing[]>;
  /** Ends the cluster as its user or its deadline would. */
  endCluster(): Promise<void>;
  /** Texts of the backend's own that must hold no secret, such as what nodes were told. */
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
  /** Why it cannot be played here; undefined where it can. */
  readonly lack?: string | undefined;
  /** Whether the cluster exists before the fault strikes. */
  readonly needsCluster?: true;
  /** Makes it go wrong, until what it returns is disposed of. */
  readonly strike?: (world: Bench) => Promise<Struck>;
  /** The command that meets the fault; the creation, if left out. */
  readonly act?: (world: Bench) => Promise<Ended>;
  readonly expected: Expected;
}

/** What one run of a fault has shown. */
export interface Evidence {
  readonly expected: Expected;
  readonly ended: Ended;
  readonly tookMs: number;
  readonly hasStruck: boolean;
  /** All that is there after the fault, without the cluster if that is kept. */
  readonly left: readonly Thing[];
  /** The next creation of the same id, and all that is there after it but its cluster. */
  readonly next: Ended;
  readonly leftAfterNext: readonly Thing[];
  readonly secrets: readonly string[];
  readonly exhibits: readonly Exhibit[];
}
