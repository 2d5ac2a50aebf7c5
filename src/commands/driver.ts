import type { Backend } from "../model/backend.ts";
import type { Surroundings } from "../system/surroundings.ts";
import type { Context } from "../cli/context.ts";
import type { Option, Options, ValuesOf } from "../cli/options/option.ts";
import type { Problems } from "../cli/options/problems.ts";
import type { Check } from "../model/check.ts";

type Values = Readonly<Record<string, unknown>>;

/** All that differs between the executables. Commands are made from it, and can't tell which executable they are in. */
export interface Driver {
  readonly program: string;
  readonly summary: string;
  /** Options of every command that looks for clusters, such as the region. */
  readonly placeOptions: Options;
  /** The option of `list` that asks every place; undefined where there is but one. */
  readonly everywhere: Option<boolean> | undefined;
  /** Options of `create` that only this backend has. */
  readonly creationOptions: Options;
  readonly distributions: readonly string[];
  readonly defaultDistribution: string;
  /** For the help, where the default depends on the machine. */
  readonly defaultDistributionText?: string;
  /** How the backend's machine ids look, for `--node`. */
  readonly machineId: RegExp;
  /** Whether clusters end by themselves, and cost money until then. */
  readonly hasLifetime: boolean;
  /** Whether there is a command that ends clusters. */
  readonly canDestroy: boolean;
  /** What `doctor` looks at: "this machine and …". */
  readonly doctorSubject: string;
  /** Why SELinux can't be put into enforcing mode on nodes of this distribution; undefined where it can. */
  selinuxProblem(distribution: string): string | undefined;
  /** Checks of several creation options together. */
  checkCreation(given: Partial<Values>, problems: Problems, context: Context): void | Promise<void>;
  /** The backend for the given place options. No request is made yet, but credentials are looked for. */
  open(values: Values, surroundings: Surroundings, signal: AbortSignal): Promise<Backend<unknown>>;
  /** The backend's own part of a creation, from the values of `creationOptions`. */
  creation(values: Values): unknown;
  /** What `doctor` looks at for this backend, in the order of showing. What the checks ask for together ends with the signal. */
  doctorChecks(values: Values, surroundings: Surroundings, signal: AbortSignal): Promise<readonly Check[]>;
}

interface TypedDriver<Place extends Options, Creation extends Options, Made> extends Omit<
  Driver,
  "placeOptions" | "creationOptions" | "checkCreation" | "open" | "creation" | "doctorChecks"
> {
  readonly placeOptions: Place;
  readonly creationOptions: Creation;
  checkCreation(given: Partial<ValuesOf<Creation>>, problems: Problems, context: Context): void | Promise<void>;
  open(values: ValuesOf<Place>, surroundings: Surroundings, signal: AbortSignal): Promise<Backend<Made>>;
  creation(values: ValuesOf<Creation>): Made;
  doctorChecks(values: ValuesOf<Place>, surroundings: Surroundings, signal: AbortSignal): Promise<readonly Check[]>;
}

/** Types a driver by its own option declarations, then forgets those types: commands pass its values through unread. */
export function defineDriver<const Place extends Options, const Creation extends Options, Made>(
  driver: TypedDriver<Place, Creation, Made>,
): Driver {
  return driver;
}
