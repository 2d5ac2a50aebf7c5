/** Injects one fault into a world of its own, and checks the outcome. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "../e2e/support/executable.ts";
import type { ArgumentWatch } from "./argument-watch.ts";
import type { Evidence, Exhibit, Fault, Thing, World } from "./fault.ts";
import {
  causeBreaches,
  leftBreaches,
  machinesLeft,
  nextBreaches,
  promiseBreaches,
  secretBreaches,
} from "./invariants.ts";
import { processesOf } from "./processes.ts";

export interface Verdict {
  /** What violated an invariant; empty if the fault was survived. */
  readonly breaches: readonly string[];
  readonly machinesLeft: number;
  readonly secretsSeen: number;
  /** The output of the command and of the next creation. */
  readonly output: string;
}

export async function runFault<Bench extends World>(
  fault: Fault<Bench>,
  open: () => Promise<Bench>,
  watch: ArgumentWatch,
): Promise<Verdict> {
  await using world = await open();
  return judge(await play(fault, world, watch));
}

function judge(evidence: Evidence): Verdict {
  const secrets = secretBreaches(evidence);
  const breaches = [
    ...(evidence.hasStruck ? [] : ["the fault never struck"]),
    ...promiseBreaches(evidence),
    ...causeBreaches(evidence),
    ...leftBreaches(evidence),
    ...secrets,
    ...nextBreaches(evidence),
  ];
  const { ended, next } = evidence;
  const output = `${ended.stdout}${ended.stderr}\n--- next create\n${next.stdout}${next.stderr}`;
  return { breaches, machinesLeft: machinesLeft(evidence), secretsSeen: secrets.length, output };
}

async function play<Bench extends World>(
  fault: Fault<Bench>,
  world: Bench,
  watch: ArgumentWatch,
): Promise<Evidence> {
  using watched = watch.watch(world.secrets);
  if (fault.needsCluster === true) await prepare(world);
  const { expected } = fault;
  const struck = await fault.strike?.(world);
  const startedMs = performance.now();
  const ended = await (fault.act?.(world) ?? world.run(world.createWords));
  const tookMs = performance.now() - startedMs;
  const hasStruck = struck?.hasStruck() ?? true;
  await struck?.[Symbol.asyncDispose]();
  const left = await leftIn(world, expected.keepsCluster);
  if (expected.keepsCluster && (await world.leftovers(false)).length > 0) await world.endCluster();
  const next = await world.run(world.createWords);
  const leftAfterNext = next.status === 0 ? withoutFiles(await leftIn(world, true), left) : [];
  const exhibits = [...(await exhibitsOf(world, { ended, next })), ...watched.seen];
  return {
    expected,
    ended,
    tookMs,
    hasStruck,
    left,
    next,
    leftAfterNext,
    secrets: world.secrets,
    exhibits,
  };
}

async function prepare(world: World): Promise<void> {
  const created = await world.run(world.createWords);
  if (created.status !== 0)
    throw new Error(`the cluster to strike could not be created:\n${created.stderr}`);
}

/** Waits a moment for processes and machines that are ending. */
async function leftIn(world: World, keepsCluster: boolean): Promise<readonly Thing[]> {
  for (const deadline = performance.now() + world.settleMs; ; await Bun.sleep(100)) {
    const left = [
      ...(await world.leftovers(keepsCluster)),
      ...(await temporaryFiles(world, keepsCluster)),
      ...(keepsCluster ? [] : processesOf(world.temporaryFolder)).map(({ id, words }): Thing => ({
        kind: "process",
        id: `${id} (${words.slice(0, 60)})`,
      })),
    ];
    if (left.length === 0 || performance.now() > deadline) return left;
  }
}

/** No creation removes another's temporary files, so they are reported only once. */
const withoutFiles = (things: readonly Thing[], known: readonly Thing[]): readonly Thing[] =>
  things.filter(({ kind, id }) => kind !== "file" || !known.some((thing) => thing.id === id));

async function temporaryFiles(
  { temporaryFolder }: World,
  keepsCluster: boolean,
): Promise<readonly Thing[]> {
  const names = await readdir(temporaryFolder).catch(() => []);
  const areSockets = await Promise.all(
    names.map(async (name) => holdsSockets(join(temporaryFolder, name))),
  );
  const left = names.filter((_, place) => !keepsCluster || areSockets[place] !== true);
  return left.map((name) => ({ kind: "file", id: join(temporaryFolder, name) }));
}

/** Whether a folder has nothing but the sockets of virtual machines' network, which stay as long as the cluster. */
async function holdsSockets(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => ["a file"]);
  return names.every((name) => /^socket-\d+$/.test(name));
}

async function exhibitsOf(
  world: World,
  runs: Readonly<Record<string, Ended>>,
): Promise<readonly Exhibit[]> {
  const outputs = Object.entries(runs).flatMap(([name, { stdout, stderr }]) => [
    { where: `stdout (${name})`, text: stdout },
    { where: `stderr (${name})`, text: stderr },
  ]);
  const files = await readdir(world.stateFolder, { recursive: true }).catch(() => []);
  const texts = files.map(async (name) => {
    const path = join(world.stateFolder, name);
    return (await stat(path)).isFile()
      ? { where: `state file ${name}`, text: await readFile(path, "latin1") }
      : [];
  });
  const found = await Promise.all(texts.map((text) => text.catch(() => [])));
  return [...outputs, ...found.flat(), ...(await world.exhibits())];
}
