import type { Backend } from "../backend/contract.ts";
import type { Runtime } from "../system/runtime.ts";
import type { Context } from "../cli/context.ts";
import type { Option, Options, ValuesOf } from "../cli/options/option.ts";
import type { Problems } from "../cli/options/problems.ts";
import type { Check } from "../model/check.ts";

type Values = Readonly<Record<string, unknown>>;

/** Everything that differs between the executables. Commands are built from it and can't tell which executable they are part of. */
export interface Driver {
  readonly program: string;
  readonly summary: string;
  /** Options, such as the region, of every command that finds clusters. */
  readonly placeOptions: Options;
  /** The option of `list` that queries every place; undefined if there is only one. */
  readonly everywhere: Option<boolean> | undefined;
  /** Options of `create` that only this backend has. */
  readonly creationOptions: Options;
  readonly distributions: readonly string[];
  readonly defaultDistribution: string;
  /** For the help, if the default depends on the machine. */
  readonly defaultDistributionText?: string;
  /** The pattern of the backend's machine ids, for `--node`. */
  readonly machineId: RegExp;
  /** Whether clusters end by themselves, and cost money until then. The others are ended by a command. */
  readonly hasLifetime: boolean;
  /** Whether the executable has commands that let other computers use a cluster. Its places are then regions. */
  readonly canHandOver: boolean;
  /** Undefined if the executable has no command for snapshots. */
  readonly snapshots: SnapshotSupport | undefined;
  /** The subject of `doctor`: "this machine and …". */
  readonly doctorSubject: string;
  /** Why SELinux can't be set to enforcing on nodes of this distribution; undefined if it can. */
  selinuxProblem(distribution: string): string | undefined;
  /** Checks several creation options together. */
  checkCreation(given: Partial<Values>, problems: Problems, context: Context): void | Promise<void>;
  /** Opens the backend for the given place options. Sends no request yet, but looks for credentials. */
  open(values: Values, runtime: Runtime, signal: AbortSignal): Promise<Backend<unknown>>;
  /** The backend's own part of a creation, from the values of `creationOptions`. */
  creation(values: Values): unknown;
  /** The checks that `doctor` runs for this backend, in display order. Requests that the checks share end with the signal. */
  doctorChecks(values: Values, runtime: Runtime, signal: AbortSignal): Promise<readonly Check[]>;
}

interface SnapshotSupport {
  /** What a snapshot of a cluster holds, for the help. */
  readonly contents: string;
  /** Whether `create` can also make a cluster from a snapshot. */
  readonly canCopy: boolean;
}

interface TypedDriver<Place extends Options, Creation extends Options, Made> extends Omit<
  Driver,
  "placeOptions" | "creationOptions" | "checkCreation" | "open" | "creation" | "doctorChecks"
> {
  readonly placeOptions: Place;
  readonly creationOptions: Creation;
  checkCreation(given: Partial<ValuesOf<Creation>>, problems: Problems, context: Context): void | Promise<void>;
  open(values: ValuesOf<Place>, runtime: Runtime, signal: AbortSignal): Promise<Backend<Made>>;
  creation(values: ValuesOf<Creation>): Made;
  doctorChecks(values: ValuesOf<Place>, runtime: Runtime, signal: AbortSignal): Promise<readonly Check[]>;
}

/** Types a driver by its own option declarations, then drops those types: commands pass its values through without reading them. */
export function defineDriver<const Place extends Options, const Creation extends Options, Made>(
  driver: TypedDriver<Place, Creation, Made>,
): Driver {
  return driver;
}
