import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { type SystemFlags, systemFlags } from "./container-flags.ts";
import { type ContainerNetwork, createNetwork } from "./container-network.ts";
import { claimDirectory } from "./directory-claim.ts";
import { type ContainerEnd, docker, watchContainerEnds } from "./docker.ts";
import { removeAll, remove } from "./docker-removal.ts";
import { Limit } from "./limit.ts";
import { LoopbackBlock } from "./loopback-block.ts";
import type { MadeMachine, MachineDriver, MachineRequest } from "./machine-driver.ts";

/** The container image of each distribution. */
const machineImages = {
  "debian-12": "localhost/cluster-e2e-machine:debian-12",
  "debian-12-docker": "localhost/cluster-e2e-machine:debian-12-docker",
};
const cloudLabel = "cluster-e2e.local-cloud";
const instanceLabel = "cluster-e2e.local-cloud-instance";
const publishedPorts = [22, 80, 443];
const atOnce = 20;
/** The exit code of a container whose init called reboot(2): SIGHUP stands for a restart, SIGINT for a power-off. */
const rebootExitCode = 129;
const consoleLines = "--tail=2000";

interface Machine {
  readonly containerId: string;
  /** It is removed or about to be, so its end is not reported. */
  isEnding: boolean;
  lastConsole: string | undefined;
}

interface Opened {
  readonly label: string;
  readonly images: Readonly<Record<string, string>>;
  readonly block: LoopbackBlock;
  readonly network: ContainerNetwork;
  readonly system: SystemFlags;
  readonly resolverFile: string;
  /** Disposed of at the end, in reverse order: the network and its machines, the addresses, the folder. */
  readonly resources: AsyncDisposableStack;
}

/** Machines that are Docker containers with systemd, cloud-init and sshd. Each has its own loopback address. */
export class ContainerDriver implements MachineDriver {
  readonly name = "container";
  readonly #opened: Opened;
  readonly #watch: AsyncDisposable;
  readonly #machines = new Map<string, Machine>();
  readonly #limit = new Limit(atOnce);
  #exited: (instanceId: string) => void = () => undefined;

  /** Removes the remains of a cloud of this folder that was killed, then creates the network. Throws if Docker or the image is missing. */
  static async open(folder: string, debianImage?: string): Promise<ContainerDriver> {
    const directory = resolve(folder);
    const images = {
      ...machineImages,
      ...(debianImage !== undefined && { "debian-12": debianImage }),
    };
    await using resources = new AsyncDisposableStack();
    resources.use(await claimDirectory(directory));
    const label = `${cloudLabel}=${directory}`;
    await removeAll(label);
    const system = await systemFlags(await present(images["debian-12"]));
    const block = resources.use(await LoopbackBlock.claim());
    resources.defer(async () => removeAll(label));
    const name = `cluster-e2e-${createHash("sha1").update(directory).digest("hex").slice(0, 12)}`;
    const network = await createNetwork(name, label);
    const resolverFile = join(directory, "resolv.conf");
    // Docker's own resolver would wait for unreachable servers. Nothing listens at this address, so lookups fail at once.
    await Bun.write(resolverFile, `nameserver ${network.gatewayAddress}\n`);
    return new ContainerDriver({
      label,
      images,
      block,
      network,
      system,
      resolverFile,
      resources: resources.move(),
    });
  }

  private constructor(opened: Opened) {
    this.#opened = opened;
    this.#watch = watchContainerEnds({ cloud: opened.label, instance: instanceLabel }, (end) =>
      this.#ended(end),
    );
  }

  get addressRange(): string {
    return this.#opened.network.range;
  }

  get gatewayAddress(): string {
    return this.#opened.network.gatewayAddress;
  }

  async create(request: MachineRequest, signal: AbortSignal): Promise<MadeMachine> {
    const { images } = this.#opened;
    const image = images[request.distribution];
    if (image === undefined) {
      throw new Error(
        `no container image for ${request.distribution}; there is ${Object.keys(images).join(", ")}`,
      );
    }
    const publicAddress = this.#opened.block.next();
    return this.#limit.run(async () => {
      signal.throwIfAborted();
      const containerId = await docker(this.#createWords(request, publicAddress, image), undefined);
      this.#machines.set(request.instanceId, {
        containerId,
        isEnding: false,
        lastConsole: undefined,
      });
      await docker(["cp", "-", `${containerId}:/`], await seed(request));
      return { publicAddress, detail: { containerId } };
    });
  }

  async start(instanceId: string, signal: AbortSignal): Promise<void> {
    const { containerId } = this.#machines.get(instanceId)!;
    await this.#limit.run(async () => {
      signal.throwIfAborted();
      await docker(["start", containerId], undefined);
    });
  }

  async kill(instanceId: string): Promise<void> {
    const machine = this.#machines.get(instanceId);
    if (machine !== undefined) await docker(["kill", machine.containerId], undefined);
  }

  async reboot(instanceId: string): Promise<void> {
    const machine = this.#machines.get(instanceId);
    // The container ends with its own exit code, and is started again.
    if (machine !== undefined)
      await docker(["exec", machine.containerId, "systemctl", "reboot"], undefined);
  }

  async destroy(instanceId: string): Promise<void> {
    const machine = this.#machines.get(instanceId);
    if (machine === undefined || machine.isEnding) return;
    machine.isEnding = true;
    await this.#limit.run(async () => {
      machine.lastConsole = await consoleOf(machine);
      const words = ["rm", "--force", "--volumes", machine.containerId];
      await docker(words, undefined).catch(async () =>
        remove("container", `id=${machine.containerId}`),
      );
    });
  }

  async console(instanceId: string): Promise<string> {
    const machine = this.#machines.get(instanceId);
    if (machine === undefined) return "";
    return machine.lastConsole ?? (await consoleOf(machine));
  }

  onExit(listener: (instanceId: string) => void): void {
    this.#exited = listener;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watch[Symbol.asyncDispose]();
    await this.#opened.resources.disposeAsync();
  }

  #createWords(request: MachineRequest, publicAddress: string, image: string): readonly string[] {
    const { label, network, system, resolverFile } = this.#opened;
    return [
      "create",
      `--label=${label}`,
      `--label=${instanceLabel}=${request.instanceId}`,
      `--hostname=${request.hostname}`,
      `--network=${network.name}`,
      `--ip=${request.privateAddress}`,
      `--volume=${resolverFile}:/etc/resolv.conf:ro`,
      ...publishedPorts.map((port) => `--publish=${publicAddress}:${port}:${port}`),
      ...system.flags,
      image,
      ...system.command,
    ];
  }

  #ended({ instanceId, exitCode }: ContainerEnd): void {
    const machine = this.#machines.get(instanceId);
    if (machine === undefined || machine.isEnding) return;
    if (exitCode !== rebootExitCode) {
      this.#exited(instanceId);
      return;
    }
    docker(["start", machine.containerId], undefined).catch((error: unknown) => {
      if (machine.isEnding) return;
      console.error(`${instanceId} did not come back from its reboot: ${String(error)}`);
      this.#exited(instanceId);
    });
  }
}

async function present(image: string): Promise<string> {
  await docker(["image", "inspect", "--format={{.Id}}", image], undefined).catch(
    (error: unknown) => {
      throw new Error(`the machines' image ${image} is needed: scripts/setup builds it`, {
        cause: error,
      });
    },
  );
  return image;
}

/** Returns cloud-init's NoCloud seed as an archive to unpack at the machine's root. */
async function seed({ instanceId, hostname, userData }: MachineRequest): Promise<Uint8Array> {
  const folder = "var/lib/cloud/seed/nocloud";
  const metaData = `instance-id: ${instanceId}\nlocal-hostname: ${hostname}\n`;
  return new Bun.Archive({
    [`${folder}/meta-data`]: metaData,
    [`${folder}/user-data`]: userData,
  }).bytes();
}

async function consoleOf(machine: Machine): Promise<string> {
  return docker(["logs", consoleLines, machine.containerId], undefined);
}
