import { expect, test } from "bun:test";
import type { EngineFacts } from "../../../../../src/backend/container/engine/engine-kind.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { assertFileSpace } from "../../../../../src/backend/container/files/file-origin.ts";
import type { ClusterFile } from "../../../../../src/backend/shared/cluster-file.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const file = { manifest: { parts: [{ bytes: 1e9 }, { bytes: 2e9 }] } } as unknown as ClusterFile;

/** Asserts the space on an engine without networks, on whose disk a container finds so many free kilobytes. */
async function assertWith(
  facts: Pick<EngineFacts, "location" | "rootFolder">,
  { image = "", freeKilobytes = 0 } = {},
) {
  const answers: Readonly<Record<string, string>> = {
    images: image,
    run: `space overlay 100000000 1 ${freeKilobytes} 1% /\n`,
  };
  const engine = {
    kind: engineKinds.docker,
    ask: async ({ words: [command = ""] }: { readonly words: readonly string[] }) =>
      answers[command] ?? "",
  } as unknown as Engine;
  const here = { cgroupVersion: "2", ...facts } as EngineFacts;
  return assertFileSpace({ progress: silentProgress, signal: neverAborted }, engine, {
    file,
    here,
  });
}

const image = "localhost/cluster-e2e-node:debian-12";

test("a container looks at the disk of an engine that is elsewhere, whatever is free here", async () => {
  const elsewhere = { location: "elsewhere", rootFolder: "/proc" } as const;
  await assertWith(elsewhere, { image, freeKilobytes: 6e6 });
  expect(await failureOf(assertWith(elsewhere, { image, freeKilobytes: 5e6 }))).toMatchObject({
    id: "capacity-lacking",
    message: "Docker's store of images has 5.1 GB of free space, but 6.0 GB are required.",
  });
});

test("without a node image nobody can look there, which is no reason to refuse", async () => {
  await assertWith({ location: "elsewhere", rootFolder: "/proc" });
});

test("the disk of an engine that may be here is looked at", async () => {
  const failure = await failureOf(assertWith({ location: "unknown", rootFolder: "/proc" }));
  expect(failure.message).toContain("has 0.0 GB of free space");
});
