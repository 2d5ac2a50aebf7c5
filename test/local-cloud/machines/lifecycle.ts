import { setTimeout as delay } from "node:timers/promises";
import type { BehaviourSetting } from "../behaviour.ts";
import type { CloudClock } from "../clock.ts";
import { type Instance, isAlive, type StateReason } from "../state/instance.ts";
import type { PrivateAddresses } from "../state/private-addresses.ts";
import type { MachineDriver, MachineRequest } from "./machine-driver.ts";

export interface LifecycleParts {
  readonly driver: MachineDriver;
  readonly behaviour: BehaviourSetting;
  readonly clock: CloudClock;
  readonly addresses: PrivateAddresses;
}

const userInitiated = {
  code: "Client.UserInitiatedShutdown",
  message: "Client.UserInitiatedShutdown: User initiated shutdown",
};
const instanceInitiated = {
  code: "Client.InstanceInitiatedShutdown",
  message: "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
};

/** Moves instances through their states, and creates and removes the machine behind each. */
export class Lifecycle {
  readonly #parts: LifecycleParts;
  readonly #instances = new Map<string, Instance>();
  readonly #details = new Map<string, Readonly<Record<string, string>>>();
  /** The last step of each machine. The next one waits for it, so that steps never overlap. */
  readonly #steps = new Map<string, Promise<void>>();
  /** Aborts the boot of an instance that is terminated meanwhile. */
  readonly #boots = new Map<string, AbortController>();
  readonly #closing = new AbortController();
  #launched = 0;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
    parts.driver.onExit((id) => this.#poweredOff(id));
  }

  /** Starts to create the machine. `failure`: it ends in `terminated` for this reason instead of running. */
  launch(instance: Instance, failure: StateReason | undefined): void {
    this.#instances.set(instance.id, instance);
    const bootDelayMs = this.#nextBootDelayMs();
    const boot = new AbortController();
    this.#boots.set(instance.id, boot);
    const signal = AbortSignal.any([boot.signal, this.#closing.signal]);
    this.#step(instance, async () => {
      if (failure === undefined) await this.#boot(instance, bootDelayMs, signal);
      else await this.#fail(instance, failure);
    });
  }

  /** Starts to terminate it, as requested by the user. */
  terminate(instance: Instance): void {
    if (instance.state === "shutting-down" || instance.state === "terminated") return;
    this.#end(instance, userInitiated, `User initiated (${gmt(this.#parts.clock.now())})`);
  }

  /** Starts to stop a running instance, as requested by the user. */
  stop(instance: Instance): void {
    if (instance.state === "running") this.#stop(instance, userInitiated);
  }

  reboot(instance: Instance): void {
    this.#step(instance, async () => this.#parts.driver.reboot(instance.id));
  }

  /** Cuts a machine's power, as a failing host does. */
  async kill(instanceId: string): Promise<void> {
    await this.#parts.driver.kill(instanceId);
  }

  async console(instanceId: string): Promise<string> {
    return this.#parts.driver.console(instanceId);
  }

  detail(instanceId: string): Readonly<Record<string, string>> {
    return this.#details.get(instanceId) ?? {};
  }

  all(): readonly Instance[] {
    return [...this.#instances.values()];
  }

  /** Removes all machines at once, without the usual states in between. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#steps.values());
    await Promise.all(
      this.all()
        .filter(isAlive)
        .map(async (instance) => {
          await this.#parts.driver.destroy(instance.id);
          this.#terminated(instance);
        }),
    );
  }

  async #boot(instance: Instance, bootDelayMs: number, signal: AbortSignal): Promise<void> {
    const { driver, behaviour } = this.#parts;
    try {
      const pending = pause(behaviour.current.pendingMs, signal);
      // Awaited without the abort: a machine must be complete before the next step may remove it.
      const made = await driver.create(machineRequest(instance), signal);
      this.#details.set(instance.id, made.detail);
      if (instance.launch.givesPublicAddress && behaviour.current.publicAddresses) {
        instance.publicAddress = made.publicAddress;
      }
      await pending;
      if (!this.#becomesRunning(instance)) return;
      await pause(bootDelayMs, signal);
      await driver.start(instance.id, signal);
    } catch (error) {
      if (!signal.aborted) this.#endAfterError(instance, error);
    }
  }

  #becomesRunning(instance: Instance): boolean {
    if (instance.state !== "pending") return false;
    instance.state = "running";
    instance.stateReason = undefined;
    return true;
  }

  async #fail(instance: Instance, failure: StateReason): Promise<void> {
    const { behaviour, clock } = this.#parts;
    await pause(behaviour.current.pendingMs, this.#closing.signal);
    if (instance.state !== "pending") return;
    instance.stateReason = failure;
    instance.transitionReason = `${failure.code} (${gmt(clock.now())})`;
    this.#terminated(instance);
  }

  #endAfterError(instance: Instance, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    const reason = {
      code: "Server.InternalError",
      message: `Server.InternalError: Internal error on launch: ${text}`,
    };
    this.#end(instance, reason, "Server.InternalError");
  }

  #poweredOff(instanceId: string): void {
    const instance = this.#instances.get(instanceId);
    if (instance === undefined || (instance.state !== "running" && instance.state !== "pending"))
      return;
    if (instance.launch.shutdownBehavior === "terminate")
      this.#end(instance, instanceInitiated, "");
    else this.#stop(instance, instanceInitiated);
  }

  #stop(instance: Instance, reason: StateReason): void {
    instance.state = "stopping";
    instance.stateReason = reason;
    this.#step(instance, async () => {
      if (reason === userInitiated) await this.#parts.driver.kill(instance.id);
      await pause(this.#parts.behaviour.current.shuttingDownMs, this.#closing.signal);
      if (instance.state === "stopping") instance.state = "stopped";
    });
  }

  #end(instance: Instance, reason: StateReason, transitionReason: string): void {
    this.#boots.get(instance.id)?.abort();
    instance.state = "shutting-down";
    instance.stateReason = reason;
    instance.transitionReason = transitionReason;
    const signal = this.#closing.signal;
    this.#step(instance, async () => {
      const atLeast = pause(this.#parts.behaviour.current.shuttingDownMs, signal);
      await Promise.all([this.#parts.driver.destroy(instance.id), atLeast]);
      this.#terminated(instance);
    });
  }

  #terminated(instance: Instance): void {
    instance.state = "terminated";
    instance.terminatedAt = this.#parts.clock.now();
    this.#parts.addresses.release(instance.privateAddress);
  }

  #step(instance: Instance, work: () => Promise<void>): void {
    const before = this.#steps.get(instance.id) ?? Promise.resolve();
    const step = before
      .then(work)
      .catch((error: unknown) => console.error(`${instance.id}: ${String(error)}`));
    this.#steps.set(instance.id, step);
  }

  #nextBootDelayMs(): number {
    const { bootDelayMs } = this.#parts.behaviour.current;
    const turn = this.#launched;
    this.#launched += 1;
    return typeof bootDelayMs === "number"
      ? bootDelayMs
      : (bootDelayMs[turn % bootDelayMs.length] ?? 0);
  }
}

/** Waits until the time has passed or the signal is aborted. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => undefined);
}

function machineRequest(instance: Instance): MachineRequest {
  return {
    instanceId: instance.id,
    hostname: `ip-${instance.privateAddress.replaceAll(".", "-")}`,
    privateAddress: instance.privateAddress,
    distribution: instance.launch.image.distribution,
    imageUser: instance.launch.image.user,
    userData: instance.launch.userData,
  };
}

/** `2026-01-02 03:04:05 GMT` */
function gmt(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace("T", " ")} GMT`;
}
