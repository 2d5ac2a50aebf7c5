/** What a driver needs to know to make one machine. */
export interface MachineRequest {
  readonly instanceId: string;
  readonly hostname: string;
  readonly privateAddress: string;
  /** `debian-12`: what has to boot. */
  readonly distribution: string;
  /** The user that the image's cloud-init makes. */
  readonly imageUser: string;
  /** As the machine reads it: decoded from base64, perhaps empty or compressed. */
  readonly userData: Uint8Array;
}

/** `detail` is what only this driver knows (container id and the like), for people and tests. */
export interface MadeMachine {
  readonly publicAddress: string;
  readonly detail: Readonly<Record<string, string>>;
}

/** Makes, starts and ends the machines behind the instances. Calls for one machine come one after another. */
export interface MachineDriver extends AsyncDisposable {
  readonly name: "container" | "in-process";
  /** The network the machines' private addresses lie in: `172.31.0.0/16`. */
  readonly addressRange: string;
  /** The host as the machines see it, where they see it at all. */
  readonly gatewayAddress: string | undefined;
  /** Makes the machine, switched off. */
  create(request: MachineRequest, signal: AbortSignal): Promise<MadeMachine>;
  start(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Switches it off as a power cut would. `onExit` is told. */
  kill(instanceId: string): Promise<void>;
  /** Removes it, on or off. Its console output stays readable. */
  destroy(instanceId: string): Promise<void>;
  console(instanceId: string): Promise<string>;
  /** Called when a machine has switched itself off, or was killed; not for `destroy`, nor for a reboot. */
  onExit(listener: (instanceId: string) => void): void;
}
