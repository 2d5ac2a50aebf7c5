import { expect, test } from "bun:test";
import { chmod, cp, mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import type { Context } from "../../../../src/cli/command.ts";
import { findCached } from "../../../../src/commands/once/cached-cluster.ts";
import type { OnceInput } from "../../../../src/commands/once/once-options.ts";
import { accepted } from "../../../../src/model/checked.ts";
import { locateArtifact } from "../../../../src/platform/artifact/artifact-request.ts";
import { readGenconfFolder } from "../../../../src/platform/configuration/configuration-file.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { writePlatform } from "../../../support/platform-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("a cached cluster fits every checkout with the same files, and no other", async () => {
  await using scratch = await scratchFolder();
  const at = (name: string): string => join(scratch.path, name);
  await writePlatform(at("first/platform"), {});
  await mkdir(at("first/genconf"));
  await writeFile(at("first/genconf/ip-detect"), "#!/bin/sh\n");
  const context = { environment: {}, signal: neverAborted } as unknown as Context;
  const nameIn = async (checkout: string): Promise<string | undefined> => {
    const folder = join(at(checkout), "platform");
    const artifact = accepted(await locateArtifact(folder, scratch.path, neverAborted));
    const genconf = await readGenconfFolder(join(at(checkout), "genconf"), neverAborted);
    // On the nodes. This computer may have such a file too.
    const copied = accepted(genconf).map((file) => ({ ...file, target: at("target") }));
    const options = { genconfDir: accepted(genconf), copyToMaster: copied };
    const input = { cache: at("cache"), artifact, ...options };
    return (await findCached(containerKind, input as unknown as OnceInput, context))?.snapshot;
  };
  const first = await nameIn("first");
  const copy = async (name: string): Promise<string> => {
    await cp(at("first"), at(name), { recursive: true });
    await utimes(join(at(name), "platform/install"), 1000, 1000);
    return at(name);
  };
  await copy("same");
  await writeFile(join(await copy("other-text"), "platform/install"), "#!/bin/sh\n: other\n");
  await chmod(join(await copy("other-mode"), "platform/platform.yaml"), 0o755);
  await writeFile(join(await copy("other-genconf"), "genconf/ip-detect"), "#!/bin/sh\nexit\n");
  await writeFile(at("target"), "");
  expect(await nameIn("same")).toBe(first);
  const others = ["other-text", "other-mode", "other-genconf"];
  const names = await Promise.all(others.map(nameIn));
  expect(new Set([first, ...names]).size).toBe(1 + others.length);
});
