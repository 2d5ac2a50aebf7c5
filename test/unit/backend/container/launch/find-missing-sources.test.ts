import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { engineFailure } from "../../../../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { type Engine, openEngine } from "../../../../../src/backend/container/engine/engine.ts";
import {
  assertVolumesExist,
  findMissingSources,
  warnOfMissingSources,
} from "../../../../../src/backend/container/launch/find-missing-sources.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { until } from "../../../../support/until.ts";

/** An engine in whose computer some paths are missing, or that fails for another reason. */
function engineWithout(missing: readonly string[], other?: string) {
  const asked: (readonly string[])[] = [];
  const ask = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    asked.push(words.filter((word) => word.startsWith("--mount=")));
    const gone = missing.find((path) => words.join(" ").includes(`source=${path},`));
    const said = `invalid mount config for type "bind": bind source path does not exist: ${gone}.`;
    const stderr = other ?? (gone === undefined ? undefined : `docker: Error response: ${said}`);
    if (stderr === undefined) return "mounted";
    throw engineFailure(engineKinds.docker, words, { status: 125, stdout: "", stderr });
  };
  return { engine: { kind: engineKinds.docker, ask } as unknown as Engine, asked };
}

const look = (...customVolumes: readonly string[]) => ({ image: "nodes:1", customVolumes });

test("without volumes, the engine isn't asked; else once, for all of them", async () => {
  const { engine, asked } = engineWithout([]);
  expect(await findMissingSources(engine, look(), neverAborted)).toEqual([]);
  expect(asked).toEqual([]);
  const volumes = look("/a:/b", "/a:/c:ro", '/x, "y":/d:z');
  expect(await findMissingSources(engine, volumes, neverAborted)).toEqual([]);
  expect(asked).toEqual([
    [
      "--mount=type=bind,source=/a,target=/cluster-e2e-volume-0,readonly",
      '--mount=type=bind,"source=/x, ""y""",target=/cluster-e2e-volume-1,readonly',
    ],
  ]);
});

test("every file and folder that is missing on the engine's computer is named", async () => {
  const { engine } = engineWithout(["/a", "/c"]);
  const volumes = look("/a:/1", "/b:/2", "/c:/3");
  expect(await failureOf(assertVolumesExist(engine, volumes, neverAborted))).toMatchObject({
    id: "bad-usage",
    message:
      "`customVolumes`: /a does not exist on the computer that Docker runs on; `customVolumes`: /c does not exist on the computer that Docker runs on",
  });
});

test.each([
  ["Error response from daemon: error setting rlimit type 7: operation not permitted", "mounted"],
  ["permission denied while trying to connect to the Docker daemon", "machine-not-set-up"],
])("what else an engine says isn't taken for a missing folder: %s", async (stderr, outcome) => {
  const { engine } = engineWithout([], `docker: ${stderr}.`);
  const missing = findMissingSources(engine, look("/a:/b"), neverAborted);
  if (outcome === "mounted") expect(await missing).toEqual([]);
  else expect(await failureOf(missing)).toMatchObject({ id: outcome });
});

test("an interrupt lets the engine remove the container with which it looks", async () => {
  await using folder = await scratchFolder();
  const [made, removed] = [join(folder.path, "made"), join(folder.path, "removed")];
  const lines = `#!/bin/sh\n: >${made}\nsleep 0.3\n: >${removed}\necho mounted\n`;
  await writeFile(join(folder.path, "docker"), lines, { mode: 0o755 });
  const environment = { PATH: `${folder.path}:/usr/bin:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  const interrupt = new AbortController();
  const missing = findMissingSources(engine, look("/a:/b"), interrupt.signal);
  missing.catch(() => {});
  await until("the engine has made it", () => existsSync(made));
  interrupt.abort(new Error("Ctrl-C"));
  expect((await failureOf(missing)).message).toBe("Ctrl-C");
  expect(existsSync(removed)).toBe(true);
});

test("before an image is built, what this computer lacks is named", () => {
  const { progress, told } = recordingProgress();
  warnOfMissingSources(["/:/host:ro", "/no/such/folder:/data"], engineKinds.docker, progress);
  expect(told).toEqual([
    "`customVolumes`: this computer has no /no/such/folder; if Docker finds none either, the creation fails when its image is there",
  ]);
});
