/** An engine in memory: containers in one network, and images that are made of them. */
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import { ClusterError } from "../../../../../src/errors.ts";

type Labels = Readonly<Record<string, string>>;

interface Container {
  readonly labels: Labels;
  readonly address: string;
  status: string;
}

export const clusterId = "default";
export const creationId = "0123456789abcdef";
const network = `cluster-e2e-${clusterId}-${creationId}`;
const own: Labels = { [labelNames.clusterId]: clusterId, [labelNames.creationId]: creationId };
const counts: Labels = { [labelNames.counts]: "master=1 agent=1 public_agent=0" };

const valueOf = (words: readonly string[], option: string): string =>
  words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1) ?? "";

const toLabels = (texts: readonly string[]): Labels =>
  Object.fromEntries(texts.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]));

export class SnapshotEngine {
  readonly containers = new Map<string, Container>();
  /** The labels of each image, by its name. */
  readonly images = new Map<string, Labels>();
  /** All commands that change something. */
  readonly changes: string[] = [];
  /** The command that fails. */
  failing = "";
  readonly engine = {
    kind: engineKinds.podman,
    option: "",
    ask: async ({ words }: { readonly words: readonly string[] }) => this.#ask(words),
    change: async ({ words }: { readonly words: readonly string[] }) => this.#change(words),
    defer: (words: readonly string[]) => ({
      run: async () => ({ status: await this.#change(words).then(() => 0), stderr: "" }),
    }),
  } as unknown as Engine;

  constructor() {
    const settings = { [labelNames.settings]: JSON.stringify({ volumes: [] }) };
    for (const [place, role] of ["master", "agent"].entries()) {
      const node = { [labelNames.role]: role, [labelNames.index]: "0" };
      const labels = { ...own, ...counts, ...settings, ...node };
      this.containers.set(idOf(place), { labels, address: `10.89.0.${place + 2}`, status: "running" });
    }
  }

  #ask(words: readonly string[]): string {
    const [command = "", next] = words;
    if (command === "info") return JSON.stringify({ host: { cgroupVersion: "v2" }, version: { Version: "4.9.3" } });
    if (command === "ps") return [...this.containers.keys()].join("\n");
    if (command === "network") return next === "ls" ? network : JSON.stringify([networkFacts]);
    if (command === "container") return JSON.stringify([...this.containers].map(describeContainer));
    if (command === "images") return words.includes("--filter=dangling=true") ? "" : this.#imageIds().join("\n");
    if (command === "image") return JSON.stringify([...this.images].map(describeImage));
    return command === "history" ? "1.5 kB\n70 MB" : "";
  }

  #imageIds(): readonly string[] {
    return [...this.images.keys()].map((_, place) => idOf(place));
  }

  async #change(words: readonly string[]): Promise<string> {
    const [command = "", ...rest] = words;
    this.changes.push(command);
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
    if (command === "start") this.containers.get(first)!.status = "running";
    return command === "create" ? this.#create(rest) : "";
  }

  #create(words: readonly string[]): string {
    const id = idOf(this.containers.size + 7);
    const labels = toLabels(words.flatMap((word) => /^--label=(.*)$/s.exec(word)?.[1] ?? []));
    this.containers.set(id, { labels, address: valueOf(words, "--ip"), status: "created" });
    return id;
  }
}

const idOf = (place: number): string => `c${place}`.padEnd(64, "0");
const networkFacts = { id: "ab".repeat(32), name: network, labels: { ...own, ...counts } };

const describeContainer = ([id, { labels, address, status }]: readonly [string, Container]) => ({
  Id: id,
  Name: `cluster-e2e-${clusterId}-${labels[labelNames.role]}_0`,
  Image: "cd".repeat(32),
  Created: "2026-01-01T00:00:00Z",
  State: { Status: status, ExitCode: 0, OOMKilled: false, Error: "" },
  Config: { Labels: labels },
  NetworkSettings: { Networks: { [network]: { IPAddress: address } }, Ports: {} },
});

const describeImage = ([name, labels]: readonly [string, Labels], place: number) => ({
  Id: idOf(place),
  RepoTags: [name],
  Created: `2026-01-01T00:00:0${place}Z`,
  Config: { Labels: labels },
});
