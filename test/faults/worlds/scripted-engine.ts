/** A Docker or Podman without containers: it keeps what it was asked for, and each started container is an SSH server in this process. */
import { randomBytes } from "node:crypto";
import { InProcessMachine } from "../../local-cloud/machines/in-process-machine.ts";
import type { LoopbackBlock } from "../../local-cloud/machines/loopback-block.ts";
import type { ScriptedAnswers } from "../../local-cloud/machines/scripted-answers.ts";
import { ScriptedImages } from "./scripted-images.ts";
import {
  type EngineAnswer,
  type ScriptedEngineName,
  answered,
  information,
  refusalBy,
} from "./engine-answers.ts";

interface Container {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly network: string;
  address: string;
  status: "created" | "running" | "paused" | "exited";
  files: string;
  machine: InProcessMachine | undefined;
}

interface Network {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly range: string;
}

const shutDownMs = 1_000;

/** How each engine names the interface that leads to a network's nodes. */
const bridges: Readonly<Record<ScriptedEngineName, Readonly<Record<string, unknown>>>> = {
  docker: { Options: { "com.docker.network.bridge.name": "lo" } },
  podman: { network_interface: "lo" },
};

export class ScriptedEngine implements AsyncDisposable {
  /** Whether containers have been told to shut down, which takes them a moment. */
  isShuttingDown = false;
  /** Whether a container gets another address when it starts again. */
  movesContainers = false;
  /** The words of each call, in order. */
  readonly calls: (readonly string[])[] = [];
  readonly #containers = new Map<string, Container>();
  readonly #networks = new Map<string, Network>();
  /** Those of snapshots. */
  readonly #images = new ScriptedImages();
  /** Their labels, by their names. */
  readonly #volumes = new Map<string, Readonly<Record<string, string>>>();
  readonly #block: LoopbackBlock;
  readonly #answers: ScriptedAnswers;
  readonly #name: ScriptedEngineName;
  readonly #refused: (said: string) => EngineAnswer;

  constructor(name: ScriptedEngineName, block: LoopbackBlock, answers: ScriptedAnswers) {
    this.#name = name;
    this.#refused = refusalBy(name);
    this.#block = block;
    this.#answers = answers;
  }

  get containers(): readonly Pick<Container, "id" | "labels" | "status">[] {
    return [...this.#containers.values()];
  }

  get networks(): readonly Network[] {
    return [...this.#networks.values()];
  }

  get images(): ScriptedImages["all"] {
    return this.#images.all;
  }

  get volumes(): ReadonlyMap<string, Readonly<Record<string, string>>> {
    return this.#volumes;
  }

  /** Loses an image of a snapshot. */
  loseImage(): void {
    this.#images.remove(this.images[0]?.name ?? "");
  }

  /** Ends a container as its own system, or somebody else, may. */
  async kill(id: string): Promise<void> {
    const container = this.#containers.get(id);
    if (container === undefined) return;
    container.status = "exited";
    await container.machine?.stop();
  }

  async #killAll(words: readonly string[]): Promise<EngineAnswer> {
    for (const { id } of this.containers)
      if (words.some((word) => id.startsWith(word))) await this.kill(id);
    return answered("");
  }

  #pause(
    words: readonly string[],
    [before, after]: readonly [Container["status"], Container["status"]],
  ): void {
    for (const container of this.#containers.values())
      if (container.status === before && words.some((word) => container.id.startsWith(word)))
        container.status = after;
  }

  async remove(id: string): Promise<void> {
    await this.kill(id);
    this.#containers.delete(id);
  }

  async run(words: readonly string[], stdin: Uint8Array): Promise<EngineAnswer> {
    const [command = "", ...rest] = words;
    this.calls.push(words);
    switch (command) {
      case "version":
        return answered(JSON.stringify({ Server: { Components: [{ Name: "Engine" }] } }));
      case "info":
        return answered(JSON.stringify(information[this.#name]));
      case "image":
        return this.#image(rest);
      case "images":
        // An image of this engine has a name, or is gone.
        return answered(
          rest.includes("--filter=dangling=true") ? "" : this.#selected(this.images, rest),
        );
      case "commit":
        return this.#commit(rest);
      case "tag":
        this.#images.tag(rest[0]!, rest[1]!);
        return answered("");
      case "save":
        return answered(this.#images.save(rest));
      case "load":
        return this.#images.load(Buffer.from(stdin))
          ? answered("")
          : this.#refused("unexpected EOF");
      case "volume":
        return this.#volume(rest);
      case "run":
        return rest.includes("--detach")
          ? this.#create([...rest, `--name=${randomBytes(8).toString("hex")}`])
          : answered("");
      case "pause":
      case "unpause":
        this.#pause(rest, command === "pause" ? ["running", "paused"] : ["paused", "running"]);
        return answered("");
      case "exec":
        return answered("");
      case "network":
        return this.#network(rest);
      case "create":
        return this.#create(rest);
      case "cp":
        if (rest[1] === "-") return this.#hostKey(rest[0]!.split(":")[0]!);
        return this.#change(rest[1]!.split(":")[0]!, async (container) => {
          const files = Buffer.from(stdin).toString("latin1");
          // Later archives have no keys.
          container.files = files.includes("OPENSSH PRIVATE KEY") ? files : container.files + files;
        });
      case "start":
        return this.#change(rest[0]!, async (container) => this.#start(container));
      case "stop":
        this.isShuttingDown = true;
        await Bun.sleep(shutDownMs);
        return this.#killAll(rest);
      case "kill":
        return this.#killAll(rest);
      case "rm":
        return this.#change(rest.at(-1)!, async ({ id }) => this.remove(id));
      case "ps":
        return answered(this.#selected(this.containers, rest));
      case "container":
        return this.#inspect(rest.slice(1));
      case "logs":
        return answered(this.#containers.get(rest.at(-1)!)?.machine?.consoleText ?? "");
      default:
        return this.#refused(`no answer is scripted for ${words.join(" ")}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { id } of this.containers) await this.remove(id);
  }

  /** The file in the container, near enough: what reads it looks for the key. */
  #hostKey(id: string): EngineAnswer {
    const [line = ""] = this.#containers.get(id)?.files.match(/ssh-ed25519 [^\n]*/) ?? [];
    return answered(line);
  }

  #commit(words: readonly string[]): EngineAnswer {
    const [id = "", name = ""] = words.slice(-2);
    const changes = words.filter((word) => word.startsWith("--change=LABEL "));
    const labels = labelsIn(changes.map((word) => word.replace("--change=LABEL ", "--label=")));
    const { labels: own = {}, files = "" } = this.#containers.get(id) ?? {};
    const made = this.#images.commit(name, { ...own, ...labels }, files);
    return answered(`sha256:${made}\n`);
  }

  #image([command, ...words]: readonly string[]): EngineAnswer {
    if (command === "rm") {
      this.#images.remove(words.at(-1)!);
      return answered("");
    }
    if (words[0]?.startsWith("--format") === true) return answered(`sha256:${"a".repeat(64)}\n`);
    return answered(JSON.stringify(this.#images.describe(words)));
  }

  #volume([command, ...words]: readonly string[]): EngineAnswer {
    if (command === "create") this.#volumes.set(words.at(-1)!, labelsIn(words));
    if (command === "rm") this.#volumes.delete(words.at(-1)!);
    const all = [...this.#volumes].map(([name, labels]) => ({ id: name, labels }));
    if (command === "ls") return answered(this.#selected(all, words));
    const described = all
      .filter(({ id }) => words.includes(id))
      .map(({ id: Name, labels: Labels }) => ({ Name, Labels }));
    return answered(command === "inspect" ? JSON.stringify(described) : "");
  }

  #network([command, ...words]: readonly string[]): EngineAnswer {
    const name = words.at(-1)!;
    if (command === "ls") return answered(this.#selected(this.networks, words));
    if (command === "create") {
      const taken = this.networks.map(({ range }) => range);
      const ranges = Array.from({ length: 99 }, (_, place) => `172.${18 + place}.0.0/16`);
      const asked = option(words, "subnet");
      if (taken.includes(asked))
        return this.#refused("Pool overlaps with other one on this address space");
      const range = asked || ranges.find((each) => !taken.includes(each))!;
      const network = { id: randomBytes(32).toString("hex"), name, labels: labelsIn(words), range };
      this.#networks.set(network.id, network);
      return answered(`${network.id}\n`);
    }
    if (command === "rm") {
      const found = this.#networkOf(name);
      if (found === undefined) return this.#refused(`network ${name} not found`);
      if (
        [...this.#containers.values()].some(
          ({ network, status }) => network === found.name && status === "running",
        )
      )
        return this.#refused(`network ${name} has active endpoints`);
      this.#networks.delete(found.id);
      return answered("");
    }
    // Docker's own network, whose bridge is not here.
    if (name === "bridge") return answered(JSON.stringify([{ Id: "b".repeat(64), Name: name }]));
    const found = words.flatMap((each) => this.#networkOf(each) ?? []);
    return answered(
      JSON.stringify(
        found.map(({ id, labels, name: own, range }) =>
          this.#described({
            Id: id,
            Name: own,
            Labels: labels,
            IPAM: { Config: [{ Subnet: range }] },
            Subnets: [{ subnet: range }],
            ...bridges[this.#name],
          }),
        ),
      ),
    );
  }

  #networkOf(nameOrId: string): Network | undefined {
    return this.networks.find(({ id, name }) => id === nameOrId || name === nameOrId);
  }

  /** Podman writes the fields of a network in small letters. */
  #described(network: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    if (this.#name === "docker") return network;
    return Object.fromEntries(
      Object.entries(network).map(([field, value]) => [field.toLowerCase(), value]),
    );
  }

  #create(words: readonly string[]): EngineAnswer {
    const name = option(words, "name");
    if (this.containers.some((container) => (container as Container).name === name))
      return this.#refused(
        `Conflict. The container name "/${name}" is already in use by container "x".`,
      );
    const id = randomBytes(32).toString("hex");
    const facts = { id, name, labels: labelsIn(words), network: option(words, "network") };
    // The former address of a node that is restored; those of new networks are not on the loopback.
    const ip = option(words, "ip");
    this.#containers.set(id, {
      ...facts,
      address: ip.startsWith("127.") ? ip : this.#block.next(),
      status: "created",
      files: this.images.find((image) => words.includes(image.name))?.files ?? "",
      machine: undefined,
    });
    return answered(`${id}\n`);
  }

  async #start(container: Container): Promise<void> {
    if (this.movesContainers && container.status === "exited")
      container.address = this.#block.next();
    const [hostKey = ""] =
      /-----BEGIN OPENSSH PRIVATE KEY-----.*?-----END OPENSSH PRIVATE KEY-----\n/s.exec(
        container.files,
      ) ?? [];
    const [publicKey = ""] = container.files.match(/ssh-ed25519 [^\n]*/g)?.slice(-1) ?? [];
    const userData = JSON.stringify({
      ssh_keys: { ed25519_private: hostKey },
      users: [{ name: "root", ssh_authorized_keys: [publicKey] }],
    });
    const request = {
      instanceId: container.id,
      hostname: container.name,
      privateAddress: container.address,
      distribution: "debian-12",
      imageUser: "root",
      userData: Buffer.from(`#cloud-config\n${userData}`),
    };
    const settings = {
      publicAddress: container.address,
      sshPort: 22,
      onExec: this.#answers.handle,
      loginShell: () => ({}),
    };
    container.machine = new InProcessMachine(request, settings);
    await container.machine.start();
    container.status = "running";
  }

  async #change(
    id: string,
    deed: (container: Container) => Promise<unknown>,
  ): Promise<EngineAnswer> {
    const container = this.#containers.get(id);
    if (container === undefined) return this.#refused(`No such container: ${id}`);
    await deed(container);
    return answered(`${id}\n`);
  }

  #inspect(ids: readonly string[]): EngineAnswer {
    const found = ids.flatMap((id) => this.#containers.get(id) ?? []);
    const described = found.map(({ id, name, labels, network, address, status }) => ({
      Id: id,
      Name: `/${name}`,
      Created: new Date().toISOString(),
      Config: { Labels: labels },
      State: {
        Status: status,
        ExitCode: status === "exited" ? 137 : 0,
        OOMKilled: false,
        Error: "",
      },
      NetworkSettings: {
        Networks: {
          [network]: { IPAddress: status === "running" ? address : "", IPPrefixLen: 16 },
        },
        Ports: {},
      },
    }));
    return answered(JSON.stringify(described));
  }

  #selected(things: readonly Pick<Container, "id" | "labels">[], words: readonly string[]): string {
    const filters = words.filter((word) => word.startsWith("--filter=label="));
    const wanted = filters.map((filter) => filter.slice("--filter=label=".length).split("="));
    const matching = things.filter(({ labels }) =>
      wanted.every(
        ([name = "", value]) =>
          labels[name] !== undefined && (value === undefined || labels[name] === value),
      ),
    );
    return matching.map(({ id }) => `${id}\n`).join("");
  }
}

const option = (words: readonly string[], name: string): string =>
  words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? "";

function labelsIn(words: readonly string[]): Readonly<Record<string, string>> {
  const labels = words
    .filter((word) => word.startsWith("--label="))
    .map((word) => word.slice("--label=".length));
  return Object.fromEntries(
    labels.map((label) => [
      label.slice(0, label.indexOf("=")),
      label.slice(label.indexOf("=") + 1),
    ]),
  );
}
