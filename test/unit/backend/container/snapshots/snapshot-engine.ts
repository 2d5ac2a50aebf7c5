/** An engine in memory: containers in one network, and images that are made of them. */
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import { ClusterError } from "../../../../../src/errors.ts";

type Labels = Readonly<Record<string, string>>;

interface Container {
  readonly labels: Labels;
  /** The name of its volume, if it has one. */
  readonly volume: string | undefined;
  readonly address: string;
  status: string;
}

export const clusterId = "default";
export const creationId = "0123456789abcdef";
const network = `cluster-e2e-${clusterId}-${creationId}`;
const own: Labels = { [labelNames.clusterId]: clusterId, [labelNames.creationId]: creationId };

const valueOf = (words: readonly string[], option: string): string =>
  words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1) ?? "";

const toLabels = (texts: readonly string[]): Labels =>
  Object.fromEntries(
    texts.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]),
  );

interface Made {
  readonly agents?: number;
  /** Of the engine. */
  readonly hasVolumes?: boolean;
  /** Folders from outside. */
  readonly volumes?: readonly string[];
}

export class SnapshotEngine {
  readonly containers = new Map<string, Container>();
  /** The labels of each image, by its name. */
  readonly images = new Map<string, Labels>();
  /** The labels of each volume of a snapshot, by its name. */
  readonly volumes = new Map<string, Labels>();
  /** All commands that change something. */
  readonly changes: string[] = [];
  /** The words of all containers that run a command and end. */
  readonly runs: (readonly string[])[] = [];
  /** What it says of its computer. */
  host: object = { cgroupVersion: "v2", security: { rootless: false } };
  /** The command that fails. */
  failing = "";
  /** Bytes that each container has written over its image. */
  layerBytes = 0;
  /** What nodes print about their disk and about sparse files. */
  space = "";
  sparse = "";
  /** A folder that containers can't mount. */
  missing: string | undefined;
  /** Commands that have no effect. */
  ignored: RegExp | undefined;
  readonly #counts: Labels;
  readonly engine = {
    kind: engineKinds.podman,
    option: "",
    ask: async ({ words }: { readonly words: readonly string[] }) => this.#ask(words),
    change: async ({ words }: { readonly words: readonly string[] }) => this.#change(words),
    defer: async (words: readonly string[]) => ({
      run: async () => ({ status: await this.#change(words).then(() => 0), stderr: "" }),
    }),
  } as unknown as Engine;

  constructor({ agents = 1, hasVolumes = false, volumes = [] }: Made = {}) {
    this.#counts = { [labelNames.counts]: `master=1 agent=${agents} public_agent=0` };
    const settings = { [labelNames.settings]: JSON.stringify({ volumes, memory: "1g" }) };
    for (const [place, role] of ["master", "agent"].slice(0, 1 + agents).entries()) {
      const node = { [labelNames.role]: role, [labelNames.index]: "0" };
      const labels = { ...own, ...this.#counts, ...settings, ...node };
      const volume = hasVolumes ? `volume-${place}` : undefined;
      this.containers.set(idOf(place), {
        labels,
        volume,
        address: `10.89.0.${place + 2}`,
        status: "running",
      });
    }
  }

  #ask(words: readonly string[]): string {
    const [command = "", next] = words;
    if (command === "info")
      return JSON.stringify({ host: this.host, version: { Version: "4.9.3" } });
    if (command === "ps") return [...this.containers.keys()].join("\n");
    const networkFacts = {
      id: "ab".repeat(32),
      name: network,
      labels: { ...own, ...this.#counts },
    };
    if (command === "network") return next === "ls" ? network : JSON.stringify([networkFacts]);
    if (command === "volume")
      return next === "ls"
        ? [...this.volumes.keys()].join("\n")
        : JSON.stringify([...this.volumes].map(describeVolume));
    if (command === "run") {
      const mounted = words.filter((word) => word.startsWith("--mount=type=bind,"));
      if (!mounted.some((word) => word.includes(`source=${this.missing},`))) return "mounted";
      throw new ClusterError("engine-failed", "It failed.", { facts: { meaning: "noSource" } });
    }
    if (command === "exec") return words.at(-1)?.includes("find /") ? this.sparse : this.space;
    if (command === "container" && words.includes("--size"))
      return JSON.stringify(
        [...this.containers.keys()].map((Id) => ({ Id, SizeRw: this.layerBytes })),
      );
    if (command === "container") return JSON.stringify([...this.containers].map(describeContainer));
    if (command === "images")
      return words.includes("--filter=dangling=true") ? "" : this.#imageIds().join("\n");
    if (command === "image") return JSON.stringify([...this.images].map(describeImage));
    return command === "history" ? "1.5 kB\n70 MB" : "";
  }

  #imageIds(): readonly string[] {
    return [...this.images.keys()].map((_, place) => idOf(place));
  }

  async #change(words: readonly string[]): Promise<string> {
    const [command = "", ...rest] = words;
    this.changes.push(command);
    if (command === "run") this.runs.push(rest);
    if (this.ignored?.test(words.join(" ")) === true) return "";
    if (command === this.failing) throw new ClusterError("engine-failed", "It failed.");
    const [first = "", second = ""] = rest;
    const last = rest.at(-1) ?? "";
    if (command === "commit") {
      const more = toLabels(rest.flatMap((word) => /^--change=LABEL (.*)$/s.exec(word)?.[1] ?? []));
      this.images.set(last, { ...this.containers.get(rest.at(-2) ?? "")?.labels, ...more });
    }
    if (command === "tag") this.images.set(second, this.images.get(first) ?? {});
    if (command === "untag") this.images.delete(first);
    if (command === "rm") this.containers.delete(last);
    if (command === "volume" && first === "create") this.volumes.set(last, labelsOf(rest));
    if (command === "volume" && first === "rm") this.volumes.delete(last);
    if (command === "start") this.containers.get(first)!.status = "running";
    if (command === "create") return this.#create(rest);
    // The size of what a helper has copied.
    return command === "run" ? "4\n" : "";
  }

  #create(words: readonly string[]): string {
    const id = idOf(this.containers.size + 7);
    const labels = labelsOf(words);
    const volume = this.volumes.size > 0 ? `new-${id}` : undefined;
    this.containers.set(id, { labels, volume, address: valueOf(words, "--ip"), status: "created" });
    return id;
  }
}

const idOf = (place: number): string => `c${place}`.padEnd(64, "0");
const labelsOf = (words: readonly string[]): Labels =>
  toLabels(words.flatMap((word) => /^--label=(.*)$/s.exec(word)?.[1] ?? []));

const describeVolume = ([name, labels]: readonly [string, Labels]) => ({
  Name: name,
  Labels: labels,
});

const describeContainer = ([id, { labels, volume, address, status }]: readonly [
  string,
  Container,
]) => ({
  Id: id,
  Name: `cluster-e2e-${clusterId}-${labels[labelNames.role]}_0`,
  Image: "cd".repeat(32),
  Created: "2026-01-01T00:00:00Z",
  State: { Status: status, ExitCode: 0, OOMKilled: false, Error: "" },
  Config: { Labels: labels },
  NetworkSettings: { Networks: { [network]: { IPAddress: address } }, Ports: {} },
  Mounts:
    volume === undefined ? [] : [{ Type: "volume", Name: volume, Destination: "/var/lib/docker" }],
});

const describeImage = ([name, labels]: readonly [string, Labels], place: number) => ({
  Id: idOf(place),
  RepoTags: [name],
  Created: `2026-01-01T00:00:0${place}Z`,
  Config: { Labels: labels },
});
