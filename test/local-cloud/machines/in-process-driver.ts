import { InProcessMachine, type SessionStart } from "./in-process-machine.ts";
import type { ExecHandler, LoginShell } from "./exec.ts";
import type { LoopbackBlock } from "./loopback-block.ts";
import type { RootShellBreaks } from "./root-shell.ts";
import type { MadeMachine, MachineDriver, MachineRequest } from "./machine-driver.ts";

export interface InProcessOptions {
  readonly block: LoopbackBlock;
  /** On Linux, port 22 needs root, or `net.ipv4.ip_unprivileged_port_start` at 22 or below. */
  readonly sshPort: number;
  readonly onExec: ExecHandler;
  readonly loginShell: () => LoginShell;
  readonly admitsSession: (openSessions: number) => boolean;
  readonly rootShellBreaks?: (() => RootShellBreaks | undefined) | undefined;
  readonly onSession?: ((session: SessionStart) => void) | undefined;
}

/** Machines that are SSH servers in this process, each with its own address. Hundreds of them are cheap. */
export class InProcessDriver implements MachineDriver {
  readonly name = "in-process";
  readonly addressRange = "172.31.0.0/16";
  readonly gatewayAddress = undefined;
  readonly #options: InProcessOptions;
  readonly #machines = new Map<string, InProcessMachine>();
  #exited: (instanceId: string) => void = () => undefined;

  constructor(options: InProcessOptions) {
    this.#options = options;
  }

  async create(request: MachineRequest, signal: AbortSignal): Promise<MadeMachine> {
    signal.throwIfAborted();
    const publicAddress = this.#options.block.next();
    const { block: _, ...settings } = { ...this.#options, publicAddress };
    this.#machines.set(request.instanceId, new InProcessMachine(request, settings));
    return { publicAddress, detail: { sshPort: String(settings.sshPort) } };
  }

  async start(instanceId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#machines.get(instanceId)!.start();
  }

  async kill(instanceId: string): Promise<void> {
    await this.#machines.get(instanceId)?.stop();
    this.#exited(instanceId);
  }

  async reboot(instanceId: string): Promise<void> {
    await this.#machines.get(instanceId)?.stop();
    await this.#machines.get(instanceId)?.start();
  }

  async destroy(instanceId: string): Promise<void> {
    await this.#machines.get(instanceId)?.stop();
  }

  async console(instanceId: string): Promise<string> {
    return this.#machines.get(instanceId)?.consoleText ?? "";
  }

  onExit(listener: (instanceId: string) => void): void {
    this.#exited = listener;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#machines.values()].map((machine) => machine.stop()));
    await this.#options.block[Symbol.asyncDispose]();
  }
}
