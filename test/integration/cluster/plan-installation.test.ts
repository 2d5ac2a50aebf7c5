import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { planInstallation } from "../../../src/cluster/plan-installation.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { added, examplePlan } from "../../support/install-example.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { artifactBytes, webServer } from "../platform/artifact/artifact-server.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("the license, the configuration's secrets and the secret parts of the URL are masked", async () => {
  await using folder = await scratchFolder();
  const licenseFile = join(folder.path, "license.txt");
  await writeFile(licenseFile, "the license\n");
  await using server = webServer(() => new Response(artifactBytes(10_000, "#!/bin/bash\n# variant: ee\n")));
  const url = `${server.origin}/a.sh?token=0123456789abcdef`;
  const hidden: string[] = [];
  const progress = { ...silentProgress, hide: (secret: string) => void hidden.push(secret) };
  const { licenseKey: _, ...configuration } = added({ superuser_password_hash: "$6$hash", other: "public" });
  const plan = examplePlan("/a", { artifact: { kind: "url", url, shown: "" }, variant: "enterprise" });

  const checked = await planInstallation(
    { ...plan, configuration: { ...configuration, licenseFile } },
    { environment: {}, clock: systemClock, progress },
    neverAborted,
  );

  expect(checked.configuration).toMatchObject({ licenseKey: "the license" });
  expect(hidden).toContain("the license");
  expect(hidden).toContain("$6$hash");
  expect(hidden).toContain(url);
  expect(hidden).not.toContain("public");
});
