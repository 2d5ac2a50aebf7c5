/** How the cloud behaves where EC2 hurts its users. Everything can be changed while it runs; times in milliseconds. */
export interface Behaviour {
  /** A new instance is `pending` at least this long. */
  readonly pendingMs: number;
  /** A new instance's id is unknown to every call this long (EC2's eventual consistency). */
  readonly instancesVisibleAfterMs: number;
  /** A new instance's tags are missing this long, in answers and for filters. */
  readonly tagsVisibleAfterMs: number;
  /** A new security group's id is unknown this long; its name is taken at once. */
  readonly groupsVisibleAfterMs: number;
  /** An ending instance is `shutting-down` at least this long, and uses its groups as long. */
  readonly shuttingDownMs: number;
  /** How long terminated instances are still shown. */
  readonly terminatedShownMs: number;
  /** Machines answer this long after `running`; of several values, each launched machine takes the next one in turn. */
  readonly bootDelayMs: number | readonly number[];
  /** Whether new machines get the public address that they ask for. */
  readonly publicAddresses: boolean;
  /** Each API call takes this long. */
  readonly apiDelayMs: number;
  /** `RequestLimitExceeded` beyond this many calls in a row, refilled at `perSecond`. */
  readonly throttle: { readonly burst: number; readonly perSecond: number } | undefined;
  /** Machines that fit into a zone; a zone not named has room. */
  readonly zoneCapacity: Readonly<Record<string, number>>;
  /** vCPUs of all running machines of a region. */
  readonly vcpuLimit: number;
  /** Actions that end in `UnauthorizedOperation`. */
  readonly deniedActions: readonly string[];
}

export const usualBehaviour: Behaviour = {
  pendingMs: 150,
  instancesVisibleAfterMs: 30,
  tagsVisibleAfterMs: 60,
  groupsVisibleAfterMs: 0,
  shuttingDownMs: 200,
  terminatedShownMs: 3_600_000,
  bootDelayMs: 0,
  publicAddresses: true,
  apiDelayMs: 0,
  throttle: undefined,
  zoneCapacity: {},
  vcpuLimit: 100_000,
  deniedActions: [],
};

/** The behaviour in force, as one mutable place that all parts of the cloud read. */
export class BehaviourSetting {
  #current: Behaviour;

  constructor(initial: Behaviour) {
    this.#current = initial;
  }

  get current(): Behaviour {
    return this.#current;
  }

  change(changes: Partial<Behaviour>): void {
    this.#current = { ...this.#current, ...changes };
  }
}
