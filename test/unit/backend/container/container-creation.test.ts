import { readContainerOptions } from "../../../../src/backend/container/options.ts";
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ContainerCreation,
  type ContainerPlan,
} from "../../../../src/backend/container/container-creation.ts";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { defaultDistribution } from "../../../../src/backend/container/distributions.ts";
import { labelNames, networkName } from "../../../../src/backend/container/records/labels.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";

interface Given {
  /** Called with each command that changes something. */
  readonly onChange?: (command: string) => void | Promise<void>;
  readonly ask?: Engine["ask"];
  readonly distribution?: string;
  readonly nodeImage?: string;
  readonly folderDistribution?: "debian-12";
}

/** A creation on an engine that has the image and allows everything. */
async function openCreation({
  onChange,
  ask = async () => "",
  distribution = defaultDistribution,
  nodeImage,
  folderDistribution,
}: Given) {
  const folder = await scratchFolder();
  const changes: string[] = [];
  const change: Engine["change"] = async ({ words }) => {
    const command = words.slice(0, ["network", "image"].includes(words[0]!) ? 2 : 1).join(" ");
    await onChange?.(command);
    changes.push(command);
    return "1".repeat(64);
  };
  const name = networkName({ clusterId: "own", creationId });
  const Labels = { [labelNames.clusterId]: "own", [labelNames.creationId]: creationId };
  const network = {
    Id: "f".repeat(64),
    Name: name,
    Labels,
    IPAM: { Config: [{ Subnet: "172.18.0.0/16" }] },
  };
  const answer: Engine["ask"] = async (request, signal) =>
    request.words.slice(0, 2).join(" ") === "network inspect"
      ? JSON.stringify([network])
      : ask(request, signal);
  const engine = { kind: engineKinds.docker, option: "", ask: answer, change } as unknown as Engine;
  const facts = { ...engineKinds.docker.readFacts({}), cgroupVersion: "2" } as const;
  const { options } = readContainerOptions(nodeImage === undefined ? {} : { nodeImage });
  const plan = {
    engine,
    root: folder.path,
    request: {
      clusterId: "own",
      variant: "oss",
      distribution,
      options,
      folderDistribution,
      counts: { master: 1, agent: 0, public_agent: 0 },
    },
    resolved: {
      kind: engine.kind,
      facts,
      reach: "direct",
      distribution: "debian-12",
      image: { name: "nodes:1", isPresent: true },
      usual: { id: "e".repeat(64) },
    },
    hasLeftovers: false,
  } as unknown as ContainerPlan;
  const { progress, told } = recordingProgress();
  const creation = new ContainerCreation(plan, { environment: {}, clock: systemClock, progress });
  return {
    creation,
    changes,
    told,
    rights: join(folder.path, ".rights"),
    claim: async (signal = neverAborted) =>
      creation.claim({ creationId, directory: join(folder.path, "own") }, signal),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test.each([
  [{}, ["Nodes run debian-12, the default under cgroups 2."]],
  [
    { folderDistribution: "debian-12" as const },
    ["Nodes run debian-12, the default for a folder."],
  ],
  [{ distribution: "debian-12" }, []],
  [{ nodeImage: "nodes:1" }, []],
])("the default distribution is named if it is used: with %j", async (given, told) => {
  await using opened = await openCreation(given);
  await opened.claim();
  expect(opened.told).toEqual(told);
});

test("after an interrupt, neither a network nor a container is created", async () => {
  await using opened = await openCreation({});
  expect((await failureOf(opened.claim(AbortSignal.abort(new Error("interrupted"))))).message).toBe(
    "interrupted",
  );
  expect([opened.changes, opened.creation.remains()?.left]).toEqual([[], undefined]);
  const interrupted = new AbortController();
  await using late = await openCreation({
    onChange: () => interrupted.abort(new Error("interrupted")),
  });
  expect((await failureOf(late.claim(interrupted.signal))).message).toBe("interrupted");
  expect(late.changes).not.toContain("create");
  expect(late.creation.remains()?.left).toContain("Containers and a network may be left.");
});

test("a creation that is rolled back takes its snapshots with it", async () => {
  const left = new Set(["2".repeat(64)]);
  const Labels = { [labelNames.snapshot]: "failed", [labelNames.creationId]: creationId };
  const ask: Engine["ask"] = async ({ words }) => {
    if (words[0] === "image")
      return JSON.stringify([...left].map((Id) => ({ Id, Config: { Labels } })));
    return words.includes("--filter=dangling=true") ? [...left].join("\n") : "";
  };
  const onChange = (command: string): void => void (command === "image rm" && left.clear());
  await using opened = await openCreation({ ask, onChange });
  await opened.claim();
  expect(await opened.creation.remove(neverAborted)).toBeUndefined();
  expect(opened.changes).toContain("image rm");
});

test("a claim that fails doesn't end before its last request has", async () => {
  const [failed, trial] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const onChange = async (command: string): Promise<void> => {
    if (command === "run") return trial.promise;
    failed.resolve();
    throw new ClusterError("capacity-lacking", "no subnet is left");
  };
  await using opened = await openCreation({ onChange });
  const ended: string[] = [];
  const claim = failureOf(opened.claim()).finally(() => ended.push("claim"));
  await failed.promise;
  await Bun.sleep(0);
  ended.push("trial");
  trial.resolve();
  expect(await claim).toMatchObject({ message: "no subnet is left" });
  expect(ended).toEqual(["trial", "claim"]);
});

test("if a node can't be reached, what the engine permits is tested again next time", async () => {
  await using opened = await openCreation({});
  await writeFile(opened.rights, "{}");
  await opened.creation.firstLogin.whyUnreachable();
  expect(existsSync(opened.rights)).toBeFalse();
  await opened.creation.firstLogin.whyUnreachable();
});
