import { askJson, type Engine } from "../engine/engine.ts";
import { means } from "../engine/engine-errors.ts";
import { labelNames } from "./labels.ts";
import type { Described } from "./read-containers.ts";
import type { DescribedNetwork } from "../engine/engine-kind.ts";

/** Selects everything of ours, or the things of one cluster id or of one creation. */
export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/**
 * Returns the engine's descriptions of things with our labels, including stopped containers. readContainers decides
 * which of them are ours.
 */
export async function describe(engine: Engine, selection: Selection, signal: AbortSignal): Promise<Described> {
  const [containers, networks] = await Promise.all([
    describeContainers(engine, selection, signal),
    describeNetworks(engine, selection, signal),
  ]);
  return { containers, networks };
}

export async function describeContainers(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const words = ["ps", "--all", "--quiet", "--no-trunc", filterWord(selection)];
  return describeEach(engine, { words, kind: "container" }, signal);
}

async function describeNetworks(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly DescribedNetwork[]> {
  const words = ["network", "ls", "--quiet", "--no-trunc", filterWord(selection)];
  const described = await describeEach(engine, { words, kind: "network" }, signal);
  return described.map((description) => engine.kind.readNetwork(description));
}

/** Matches ids, and the names that Podman uses for networks. */
const nameShape = /^(?:sha256:)?[a-zA-Z0-9][a-zA-Z0-9_.-]{0,255}$/;

/** Describes the things whose ids or names the command prints. */
export async function describeEach(
  engine: Engine,
  { words, kind }: { readonly words: readonly string[]; readonly kind: "container" | "network" | "image" | "volume" },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const lines = (await engine.ask({ words }, signal)).split("\n").filter((name) => nameShape.test(name));
  // An image with two names is printed twice.
  return inspect(engine, { names: [...new Set(lines)], kind }, signal);
}

/** Describes the containers with these ids. The answer lacks those that are gone. */
export async function inspectContainers(
  engine: Engine,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  return inspect(engine, { names: ids, kind: "container" }, signal);
}

async function inspect(
  engine: Engine,
  { names, kind }: { readonly names: readonly string[]; readonly kind: string },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  if (names.length === 0) return [];
  // Something that was removed meanwhile is missing from the answer.
  const accepts = (stderr: string): boolean => means(stderr, "gone");
  const answer = await askJson(engine, { words: [kind, "inspect", ...names], accepts }, signal);
  return Array.isArray(answer) ? (answer as readonly unknown[]) : [];
}

export function filterWord(selection: Selection): string {
  if (selection === "all") return `--filter=label=${labelNames.clusterId}`;
  if ("clusterId" in selection) return `--filter=label=${labelNames.clusterId}=${selection.clusterId}`;
  return `--filter=label=${labelNames.creationId}=${selection.creationId}`;
}
