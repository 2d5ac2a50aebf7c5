import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "../../../../src/backend/container/engine.ts";
import { canBePrivileged } from "../../../../src/backend/container/system-flags.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Answers what its bridge is, and counts what is tried. */
function engineOf({ bridge, allows }: { readonly bridge: string; readonly allows: boolean }) {
  const tried: string[] = [];
  const engine: Engine = {
    program: "docker",
    ask: async () => Promise.resolve(bridge),
    change: async ({ words }) => {
      tried.push(words.join(" "));
      return allows ? Promise.resolve("") : Promise.reject(new Error("operation not permitted"));
    },
  };
  return { engine, tried };
}

const [one, other] = ["1".repeat(64), "2".repeat(64)];
const never = new AbortController().signal;

test("whether containers can be privileged is tried once for each start of the engine", async () => {
  await using folder = await scratchFolder();
  const place = { image: "debian", memory: join(folder.path, "memory") };
  const first = engineOf({ bridge: one, allows: false });
  expect(await canBePrivileged(first.engine, place, never)).toBe(false);
  expect(await canBePrivileged(first.engine, place, never)).toBe(false);
  expect(first.tried).toEqual(["run --rm --privileged --network=none --entrypoint=/bin/true debian"]);
  const restarted = engineOf({ bridge: other, allows: true });
  expect(await canBePrivileged(restarted.engine, place, never)).toBe(true);
  expect(await canBePrivileged(restarted.engine, place, never)).toBe(true);
  expect(restarted.tried).toHaveLength(1);
});

test("it is tried each time where the engine has no bridge, nothing can be kept, or what was kept is torn", async () => {
  await using folder = await scratchFolder();
  const memory = join(folder.path, "memory");
  const without = engineOf({ bridge: "", allows: true });
  for (let round = 0; round < 2; round += 1) await canBePrivileged(without.engine, { image: "a", memory }, never);
  expect(without.tried).toHaveLength(2);
  const unkept = engineOf({ bridge: one, allows: true });
  const nowhere = join(folder.path, "missing", "memory");
  for (let round = 0; round < 2; round += 1) {
    expect(await canBePrivileged(unkept.engine, { image: "a", memory: nowhere }, never)).toBe(true);
  }
  expect(unkept.tried).toHaveLength(2);
  await writeFile(memory, `${one} n`);
  expect(await canBePrivileged(unkept.engine, { image: "a", memory }, never)).toBe(true);
  expect(await readFile(memory, "utf8")).toBe(`${one} yes\n`);
});
