/** The whole life of a cluster, wherever its engine is. */
import { expect } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bareNodeImage } from "./container-engine.ts";
import type { Ended } from "./executable.ts";

/** Where there are `cluster-container`, an engine with `bareNodeImage`, and nothing else of ours. */
export interface LifePlace {
  /** A folder, by its path for the program. */
  readonly path: string;
  /** Writes a file of this name into it, or reads one. */
  write(name: string, text: string): Promise<unknown>;
  read(name: string): Promise<string>;
  /** Of `create`; absent: `bareOptions`. */
  readonly options?: string;
  /** Runs `cluster-container`. */
  run(words: readonly string[]): Promise<Ended>;
  /** What is in the engine. */
  things(): Promise<readonly string[]>;
}

/** The files of a place whose folder is here. */
export const filesIn = (folder: string): Pick<LifePlace, "write" | "read"> => ({
  write: async (name, text) => writeFile(join(folder, name), text),
  read: async (name) => Bun.file(join(folder, name)).text(),
});

/** Runs a command that must succeed, and resolves with what it prints. */
export async function succeed({ run }: Pick<LifePlace, "run">, line: string): Promise<string> {
  const ended = await run(line.split(" "));
  expect(ended.status, `${line}: ${ended.stderr}`).toBe(0);
  return ended.stdout;
}

/** Of a cluster that is soon there, where there are no control groups for limits. */
export const unlimitedOptions = `--timeout 14m --wait --node-image ${bareNodeImage} example:bare`;
/** Of a cluster that is soon there. */
export const bareOptions = `--memory 400m ${unlimitedOptions}`;

/** From `doctor` to `destroy`, with nothing left but `ID.zst`, a file of the cluster. `use` has a turn while it runs. */
export async function expectLife(
  place: LifePlace,
  id: string,
  use?: () => Promise<unknown>,
): Promise<void> {
  const ask = async (line: string): Promise<string> => succeed(place, line);
  const onAgent = async (line: string): Promise<string> =>
    ask(`run -c ${id} --node agent_0 ${line}`);
  const before = await place.things();
  expect((await place.run(["doctor"])).stdout).toMatch(/✔ engine/);
  await ask(`create -c ${id} --agents 1 --public-agents 0 ${place.options ?? bareOptions}`);
  expect(await onAgent("hostname")).toBe("agent-0\n");
  const address = await onAgent("hostname -I");
  await ask(`node stop agent_0 -c ${id}`);
  await ask(`node start agent_0 -c ${id}`);
  expect(await onAgent("hostname -I")).toBe(address);
  await onAgent("mount -t tmpfs -o size=16m tmpfs /mnt");
  await ask(`fault disk agent_0 --fill /mnt --for 2s --wait -c ${id}`);
  await place.write("sent", id);
  for (const node of ["master_0", "agent_0"])
    await ask(`cp ${place.path}/sent ${node}:/root/sent -c ${id}`);
  await use?.();
  await ask(`snapshot create s -c ${id}`);
  await ask(`create -c ${id}-copy --from ${id}:s`);
  expect(await ask(`run -c ${id}-copy --node agent_0 ping -c 1 -q -W 30 master-0`)).toContain(
    "1 rec",
  );
  expect(await ask(`run -c ${id}-copy --node agent_0 cat /root/sent`)).toBe(id);
  await ask(`snapshot save s ${place.path}/${id}.zst -c ${id}`);
  await ask(`logs -c ${id} --output-dir ${place.path}/logs-${id}`);
  expect(await place.read(`logs-${id}/agent_0.journal.txt`)).not.toBe("");
  for (const each of [`${id}-copy`, id]) await ask(`destroy -c ${each} --yes`);
  expect(await place.things()).toEqual(before);
}

/** Of the file that `expectLife` left in another place, this one makes a cluster. */
export async function expectArrival(
  place: Pick<LifePlace, "run">,
  file: string,
  [from, id]: readonly [from: string, id: string],
): Promise<void> {
  await succeed(place, `create -c ${id} --from ${file}`);
  expect(await succeed(place, `run -c ${id} --node master_0 cat /root/sent`)).toBe(from);
  await succeed(place, `destroy -c ${id} --yes`);
}

/** The containers, volumes and networks of an engine that nobody else uses. */
export async function thingsIn(
  engine: (words: readonly string[]) => Promise<string>,
): Promise<readonly string[]> {
  const lists = [
    ["ps", "--all", "--quiet"],
    ["volume", "ls", "--quiet"],
    ["network", "ls", "--format={{.Name}}"],
  ];
  return await Promise.all(lists.map(async (words) => engine(words)));
}
