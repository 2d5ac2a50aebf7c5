/** Simulates the behaviour of EC2 that causes trouble for its users. It can be changed at any time. Times are in milliseconds. */
export interface Behaviour {
  /** A new instance stays `pending` for at least this long. */
  readonly pendingMs: number;
  /** A new instance's id is unknown to all calls for this long (EC2's eventual consistency). */
  readonly instancesVisibleAfterMs: number;
  /** A new instance's tags are missing for this long, in responses and for filters. */
  readonly tagsVisibleAfterMs: number;
  /** A new security group's id is unknown for this long. Its name is taken at once. */
  readonly groupsVisibleAfterMs: number;
  /** Descriptions of instances name their security groups only at their network interfaces, as other implementations of EC2 do. */
  readonly groupsOnlyAtInterfaces: boolean;
  /** A terminating instance stays `shutting-down`, and uses its groups, for at least this long. */
  readonly shuttingDownMs: number;
  /** Terminated instances remain visible for this long. */
  readonly terminatedShownMs: number;
  /** Machines answer this long after `running`. With several values, each new machine takes the next one, round robin. */
  readonly bootDelayMs: number | readonly number[];
  /** Whether new machines get the public address that they request. */
  readonly publicAddresses: boolean;
  /** Each API call takes this long. */
  readonly apiDelayMs: number;
  /** A token bucket: more calls in a row fail with `RequestLimitExceeded`. It refills at `perSecond`. */
  readonly throttle: { readonly burst: number; readonly perSecond: number } | undefined;
  /** The number of machines that fit into each zone. Other zones have no limit. */
  readonly zoneCapacity: Readonly<Record<string, number>>;
  /** The limit on vCPUs of all running machines in a region. */
  readonly vcpuLimit: number;
  /** The limit on security groups in each network. */
  readonly groupLimit: number;
  /** The values that a policy of the organization allows for tags, by key. A tag with another value is refused. */
  readonly tagPolicy: Readonly<Record<string, readonly string[]>>;
  /** Actions that fail with `UnauthorizedOperation`. */
  readonly deniedActions: readonly string[];
  /** What denies them: `with an explicit deny in a service control policy`. Default: that nothing allows them. */
  readonly denialReason: string;
}

export const usualBehaviour: Behaviour = {
  pendingMs: 150,
  instancesVisibleAfterMs: 30,
  tagsVisibleAfterMs: 60,
  groupsVisibleAfterMs: 0,
  groupsOnlyAtInterfaces: false,
  shuttingDownMs: 200,
  terminatedShownMs: 3_600_000,
  bootDelayMs: 0,
  publicAddresses: true,
  apiDelayMs: 0,
  throttle: undefined,
  zoneCapacity: {},
  vcpuLimit: 100_000,
  groupLimit: 2_500,
  tagPolicy: {},
  deniedActions: [],
  denialReason: "",
};

/** The current behaviour, which all parts of the cloud read from here. */
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
