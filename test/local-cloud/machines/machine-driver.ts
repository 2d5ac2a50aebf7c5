/** Everything that a driver needs to create a machine. */
export interface MachineRequest {
  readonly instanceId: string;
  readonly hostname: string;
  readonly privateAddress: string;
  /** The distribution to boot, such as `debian-12`. */
  readonly distribution: string;
  /** The user that the image's cloud-init creates. */
  readonly imageUser: string;
  /** As the machine receives it: decoded from base64; it may be empty or compressed. */
  readonly userData: Uint8Array;
}

/** `detail` contains facts of this driver, such as the container id, for people and tests. */
export interface MadeMachine {
  readonly publicAddress: string;
  readonly detail: Readonly<Record<string, string>>;
}

/** Creates, starts and ends the machines behind the instances. Calls for the same machine never overlap. */
export interface MachineDriver extends AsyncDisposable {
  readonly name: "container" | "in-process";
  /** The network that contains the machines' private addresses: `172.31.0.0/16`. */
  readonly addressRange: string;
  /** The host's address for the machines, if they can reach it. */
  readonly gatewayAddress: string | undefined;
  /** Creates the machine without starting it. */
  create(request: MachineRequest, signal: AbortSignal): Promise<MadeMachine>;
  start(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Switches it off, like a power cut. Calls `onExit`. */
  kill(instanceId: string): Promise<void>;
  /** Restarts a running machine. It keeps its disk and its host keys. */
  reboot(instanceId: string): Promise<void>;
  /** Removes it, whether it runs or not. Its console output stays readable. */
  destroy(instanceId: string): Promise<void>;
  console(instanceId: string): Promise<string>;
  /** Called when a machine has switched itself off or was killed, but not after `destroy` or a reboot. */
  onExit(listener: (instanceId: string) => void): void;
}
