import { optionName } from "../../../src/references.ts";
import { unmarked } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  assertWorkspace,
  installationProblems,
  planInstallation,
  workspaceBytes,
} from "../../../src/cluster/plan-installation.ts";
import { checkedHead } from "../../../src/cluster/upgrade/plan-upgrade.ts";
import type { ArtifactLocation } from "../../../src/platform/artifact/artifact-request.ts";
import { platformHead } from "../../../src/platform/folder/platform-file.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { examplePlan } from "../../support/install-example.ts";
import { leastFacts } from "../../support/platform-facts.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const folder = {
  kind: "folder",
  platform: { facts: leastFacts, files: [] },
  shown: "/meter",
} as const;
const { signal } = new AbortController();

const missing = "/nowhere/license.txt";
const unreadable = (source: string): string =>
  `${source}: cannot read the license file ${missing}: the file does not exist.`;

function releaseOnly(name: string): string {
  return `\`${name}\`: only releases of the platform have it, but not /meter`;
}

const web = (url: string) => ({ kind: "url", url, shown: "URL" }) as const;
const plainHttp =
  "URL: plain http requires `artifactSha256`, because anyone on the way can change the file; or use https://";

test("create and upgrade refuse plain http from another computer without a checksum before they request anything", async () => {
  const runtime = { clock: systemClock, progress: silentProgress, environment: {} };
  const failure = await failureOf(
    checkedHead(
      { ...runtime, signal },
      { artifact: web("http://192.0.2.7/a.sh"), sha256: undefined },
    ),
  );
  expect(failure).toMatchObject({ id: "bad-usage", exitCode: 2, message: plainHttp });
  const configuration = {
    kind: "added",
    values: {},
    securityMode: undefined,
    licenseFile: undefined,
  } as const;
  const request = { ...examplePlan("", {}), configuration, artifact: web("http://192.0.2.7/a.sh") };
  expect(await failureOf(planInstallation({ ...runtime, signal }, request))).toMatchObject({
    id: "bad-usage",
  });
});

test.each([
  [
    { variant: "oss", securityMode: "strict" },
    ["`securityMode`: only the enterprise variant has security modes"],
  ],
  [{ variant: "oss", licenseKey: missing }, []],
  [
    {
      variant: "enterprise",
      securityMode: "strict",
      extraConfig: { license_key_contents: "text" },
    },
    [],
  ],
  [{ variant: "enterprise", licenseKey: missing }, [unreadable("`licenseKey`")]],
  [{ variant: "enterprise" }, [unreadable("CLUSTER_LICENSE_KEY_PATH")]],
  [
    { variant: "enterprise", extraConfig: { license_key_contents: 1 } },
    ["`extraConfig`: license_key_contents must be text."],
  ],
  [{ securityMode: "strict", licenseKey: missing }, []],
  [{ artifact: folder }, []],
  [{ artifact: folder, licenseKey: missing, extraConfig: { a: 1 } }, [releaseOnly("licenseKey")]],
  [
    {
      artifact: folder,
      variant: "oss",
      securityMode: "strict",
      artifactSha256: "ab",
      superuserPassword: "x",
    },
    ["variant", "artifactSha256", "securityMode", "superuserPassword"].map(releaseOnly),
  ],
  [{ variant: "oss", artifact: web("http://host.example/a.sh") }, [plainHttp]],
  [{ variant: "oss", artifact: web("http://127.example.com/a.sh") }, [plainHttp]],
  [{ variant: "oss", artifact: web("http://x.localhost/a.sh") }, [plainHttp]],
  [{ variant: "oss", artifact: web("http://192.0.2.7/a.sh") }, [plainHttp]],
  [{ variant: "oss", artifact: web("http://host.example/a.sh"), artifactSha256: "ab" }, []],
  [{ variant: "oss", artifact: web("https://host.example/a.sh") }, []],
  ...["127.0.0.1:80", "127.9.9.9", "localhost:8000", "[::1]"].map(
    (host) => [{ variant: "oss", artifact: web(`http://${host}/a.sh`) }, []] as const,
  ),
] as const)("the installation options %j have the problems %j", async (given, problems) => {
  const found = await installationProblems(given, { CLUSTER_LICENSE_KEY_PATH: missing }, signal);
  expect(found.map(unmarked)).toEqual([...problems]);
});

const packed = `#!/bin/bash\n# variant: none\n# platform: ${platformHead(leastFacts)}\n`;
const required = `${optionName("variant")}: required (oss, enterprise)`;

test("the variant is required for a local artifact that has variants, but first it must be an artifact", async () => {
  await using scratch = await scratchFolder();
  const path = join(scratch.path, "artifact.sh");
  const problems = async (text: string, given: object = {}): Promise<readonly string[]> => {
    await writeFile(path, text);
    return installationProblems(
      { artifact: { kind: "file", path, shown: path }, ...given },
      {},
      signal,
    );
  };
  expect(await problems("#!/bin/bash\n# variant: oss\n")).toEqual([required]);
  expect(await problems("#!/bin/bash\n# variant: oss\n", { variant: "oss" })).toEqual([]);
  expect(await problems("#!/bin/bash\n# variant: oss\n", { hasWrongVariant: true })).toEqual([]);
  expect(await problems("not a script")).toEqual([]);
  expect(await problems(packed)).toEqual([]);
});

test("a packed folder has no variant, and nothing that depends on one", async () => {
  await using scratch = await scratchFolder();
  const path = join(scratch.path, "artifact.sh");
  await writeFile(path, packed);
  const runtime = {
    environment: { CLUSTER_LICENSE_KEY_PATH: missing },
    clock: systemClock,
    progress: silentProgress,
  };
  const given = {
    kind: "added",
    values: {},
    securityMode: undefined,
    licenseFile: undefined,
  } as const;
  const plan = async (changes: object, configuration = given) =>
    planInstallation({ ...runtime, signal }, { ...examplePlan(path, changes), configuration });
  const found = await plan({ variant: undefined });
  expect(found).toMatchObject({
    variant: "none",
    platform: leastFacts,
    layout: { name: "folder" },
  });
  const failure = await failureOf(
    plan({ variant: "oss" }, { ...given, securityMode: "strict" } as never),
  );
  expect(failure).toMatchObject({ id: "bad-usage" });
  expect(failure.message).toBe(
    ["variant", "securityMode"].map((name) => releaseOnly(name).replace("/meter", path)).join("; "),
  );
  await writeFile(path, "#!/bin/bash\n# variant: oss\n");
  expect((await failureOf(plan({ variant: undefined }))).message).toBe(unmarked(required));
  expect(await plan({ variant: "oss" })).toMatchObject({ variant: "oss" });
  expect(await failureOf(plan({ variant: "enterprise" }))).toMatchObject({
    id: "variant-mismatch",
  });
  expect(await failureOf(plan({ variant: "oss", sha256: "0".repeat(64) }))).toMatchObject({
    id: "artifact-invalid",
  });
});

test("a workspace must be a folder with room for an artifact", async () => {
  await using scratch = await scratchFolder();
  const file = { kind: "file", path: "/a.sh", shown: "a.sh" } as const;
  expect(await assertWorkspace(file, scratch.path)).toBeUndefined();
  expect(await failureOf(assertWorkspace(file, join(scratch.path, "none")))).toMatchObject({
    id: "machine-not-set-up",
  });
});

test("a workspace needs 2 GB for a download, a folder's own size for a folder, and nothing for a file", () => {
  const sized = { ...folder, platform: { ...folder.platform, files: [{ sizeBytes: 3e8 }] } };
  expect(workspaceBytes(web("https://example.com/a.sh"))).toBe(2e9);
  expect(workspaceBytes(sized as unknown as ArtifactLocation)).toBe(4e8);
  expect(workspaceBytes({ kind: "file", path: "/a.sh", shown: "a.sh" })).toBe(0);
});
