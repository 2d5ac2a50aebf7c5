import { askJson, type Engine } from "./engine.ts";
import { means } from "./engine-errors.ts";
import { labelNames, type LabelValues } from "./labels.ts";

/** Which of our things: all, those of one cluster id, or those of one creation. */
export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/** What the engine tells of a container, as far as it is used here. */
export interface Container {
  readonly Id: string;
  readonly Created: string;
  readonly State: {
    /** `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`; of Podman also `initialized`, `stopping`, `stopped`. */
    readonly Status: string;
    readonly ExitCode: number;
    readonly OOMKilled?: boolean;
    readonly Error?: string;
  };
  readonly Config: { readonly Labels: Readonly<Record<string, string>> | null };
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>>;
    readonly Ports?: Readonly<Record<string, readonly { readonly HostPort: string }[] | null>> | null;
  };
}

export interface Network {
  readonly id: string;
  readonly labels: LabelValues;
}

/** Stopped ones too. */
export async function describeContainers(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly Container[]> {
  const words = ["ps", "--all", "--quiet", "--no-trunc", filterWord(selection)];
  return (await describeEach(engine, { words, kind: "container" }, signal)) as readonly Container[];
}

export async function describeNetworks(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly Network[]> {
  const words = ["network", "ls", "--quiet", "--no-trunc", filterWord(selection)];
  const described = await describeEach(engine, { words, kind: "network" }, signal);
  return described.map((description) => engine.kind.readNetwork(description));
}

async function describeEach(
  engine: Engine,
  { words, kind }: { readonly words: readonly string[]; readonly kind: "container" | "network" },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const names = (await engine.ask({ words }, signal)).split("\n").filter((name) => name !== "");
  if (names.length === 0) return [];
  // One that was removed meanwhile is missing from the answer.
  const accepts = (stderr: string): boolean => means(stderr, "gone");
  return (await askJson(engine, { words: [kind, "inspect", ...names], accepts }, signal)) as unknown[];
}

function filterWord(selection: Selection): string {
  if (selection === "all") return `--filter=label=${labelNames.clusterId}`;
  if ("clusterId" in selection) return `--filter=label=${labelNames.clusterId}=${selection.clusterId}`;
  return `--filter=label=${labelNames.creationId}=${selection.creationId}`;
}
