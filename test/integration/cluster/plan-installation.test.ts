import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { planInstallation } from "../../../src/cluster/plan-installation.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { added, examplePlan } from "../../support/install-example.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { artifactBytes, webServer } from "../platform/artifact/artifact-server.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("the license, the configuration's secrets and the secret parts of the URL are masked", async () => {
  await using folder = await scratchFolder();
  const licenseFile = join(folder.path, "license.txt");
  await writeFile(licenseFile, "the license\n");
  await using server = webServer(
    () => new Response(artifactBytes(10_000, "#!/bin/bash\n# variant: ee\n")),
  );
  const url = `${server.origin}/a.sh?token=0123456789abcdef`;
  const hidden: string[] = [];
  const progress = { ...silentProgress, hide: (secret: string) => void hidden.push(secret) };
  const { licenseKey: _, ...configuration } = added({
    superuser_password_hash: "$6$hash",
    other: "public",
  });
  const plan = examplePlan("/a", {
    artifact: { kind: "url", url, shown: "" },
    variant: "enterprise",
  });

  const checked = await planInstallation(
    { environment: {}, clock: systemClock, progress, signal: neverAborted },
    { ...plan, configuration: { ...configuration, licenseFile } },
  );

  expect(checked.configuration).toMatchObject({ licenseKey: "the license" });
  expect(hidden).toContain("the license");
  expect(hidden).toContain("$6$hash");
  expect(hidden).toContain(url);
  expect(hidden).not.toContain("public");
});

test("progress names an artifact whose server takes long", async () => {
  await using server = webServer(async () =>
    Bun.sleep(6_000).then(() => new Response("", { status: 404 })),
  );
  const artifact = { kind: "url", url: `${server.origin}/a.sh`, shown: "the artifact" } as const;
  const notes: string[] = [];
  const progress = { ...silentProgress, note: (text: string) => void notes.push(text) };
  const planned = planInstallation(
    { environment: {}, clock: systemClock, progress, signal: neverAborted },
    { ...examplePlan("/a", { artifact }), configuration: { ...added({}), licenseFile: undefined } },
  );
  expect((await failureOf(planned)).id).toBe("artifact-unreachable");
  expect(notes).toEqual(["Still reading the artifact."]);
});

test("a pipe with a checksum is refused like one without, because nobody may ever write to it", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "pipe");
  await Bun.$`mkfifo ${path}`;
  const runtime = { environment: {}, clock: systemClock, progress: silentProgress };
  for (const sha256 of [undefined, "0".repeat(64)]) {
    const plan = examplePlan("/a", { artifact: { kind: "file", path, shown: path } });
    const request = { ...plan, configuration: { ...added({}), licenseFile: undefined }, sha256 };
    const planned = planInstallation({ ...runtime, signal: neverAborted }, request);
    expect(await failureOf(planned)).toMatchObject({ id: "artifact-invalid" });
  }
});
