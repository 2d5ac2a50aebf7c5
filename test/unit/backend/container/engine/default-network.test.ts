import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { platform } from "node:os";
import { join } from "node:path";
import { rememberHere } from "../../../../../src/backend/container/engine/default-network.ts";
import type {
  DescribedNetwork,
  EngineKind,
} from "../../../../../src/backend/container/engine/engine-kind.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { rememberedReach } from "../../../../../src/backend/container/engine/find-reach.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

/** An interface that every Linux has. */
const here = "lo";
const id = randomBytes(32).toString("hex");
const other = randomBytes(32).toString("hex");

const usualOf = (each: { readonly id?: string; readonly bridge?: string }): DescribedNetwork => ({
  ...engineKinds.docker.readNetwork({ Id: id }),
  bridge: here,
  ...each,
});

interface Circumstances {
  readonly says?: object;
  readonly kind?: EngineKind;
  /** Changes what was kept. */
  readonly change?: (path: string) => Promise<void>;
}

/** How a Docker without other networks is reached after a cluster with this bridge was made. */
async function wayAfter(
  bridge: unknown,
  usual: DescribedNetwork,
  { says = {}, kind = engineKinds.docker, change = async () => {} }: Circumstances = {},
) {
  await using folder = await scratchFolder();
  const root = folder.path;
  const asked: string[] = [];
  const ask: Engine["ask"] = async ({ words }) => {
    asked.push(words.slice(0, 2).join(" "));
    return "";
  };
  const engine = { kind, ask } as unknown as Engine;
  await rememberHere(engine, { root, usual: usualOf({}) }, bridge);
  await change(join(root, ".here"));
  const facts = kind.readFacts(says);
  const met = { facts, platform: "linux", root, usual } as const;
  return { ...(await rememberedReach(engine, met, neverAborted)), asked };
}

test.skipIf(platform() !== "linux")(
  "an engine that was once found here is not asked again where it is",
  async () => {
    expect(await wayAfter(here, usualOf({}))).toEqual({
      reach: "direct",
      why: "Docker was found on this computer before",
      asked: [],
    });
  },
);

test.each([
  ["has started again", here, usualOf({ id: other })],
  ["has its own network elsewhere", here, usualOf({ bridge: "docker-far" })],
  ["has no network of its own", here, engineKinds.docker.readNetwork(undefined)],
  ["made that cluster elsewhere", `br-${id.slice(0, 12)}`, usualOf({})],
  ["made a cluster whose bridge isn't known", undefined, usualOf({})],
])("an engine that %s is asked where it is", async (_, bridge, usual) => {
  expect(await wayAfter(bridge, usual)).toMatchObject({ reach: "unknown", asked: ["network ls"] });
});

test.skipIf(platform() !== "linux").each(["net:[", "-"])(
  "an engine that was found here in another network, or before another boot (%s), is asked where it is",
  async (part) => {
    const change = async (path: string): Promise<void> =>
      writeFile(path, (await readFile(path, "utf8")).replace(part, "other"));
    const way = await wayAfter(here, usualOf({}), { change });
    expect(way).toMatchObject({ reach: "unknown", asked: ["network ls"] });
  },
);

test("a rootless engine is never taken for one with bridges here", async () => {
  const says = { SecurityOptions: ["name=rootless"], CgroupVersion: "2", CgroupDriver: "systemd" };
  expect(await wayAfter(here, usualOf({}), { says })).toMatchObject({ reach: "engine" });
});

test("Podman's own network, which always has the same id, says nothing", async () => {
  const says = { host: { security: { rootless: false }, serviceIsRemote: true } };
  expect(await wayAfter(here, usualOf({}), { says, kind: engineKinds.podman })).toMatchObject({
    reach: "engine",
  });
});
