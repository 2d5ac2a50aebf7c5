/** The first master knows whether its web server uses TLS, whatever the cluster's tags say. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { findWebUi, type FoundWebUi } from "../../../src/cluster/web-ui.ts";
import type { Variant } from "../../../src/model/cluster-record.ts";
import { type PlatformFacts, platformHead } from "../../../src/platform/folder/platform-file.ts";
import { leastFacts } from "../../support/platform-facts.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal } from "../../support/ssh-options.ts";

/** Finds the web UI of a master that has these files, by path. */
async function find(
  files: Readonly<Record<string, string>>,
  variant: Variant = "oss",
): Promise<FoundWebUi | undefined> {
  await using scratch = await scratchFolder();
  await using machines = await startMachines({ roles: ["master"] });
  const [master] = machines.machines;
  for (const [path, text] of Object.entries(files)) await master!.write(path, text);
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const node = { ...master!.node, web: { host: "192.0.2.1", httpPort: 80, httpsPort: 8443 } };
  const cluster = { ...exampleCluster([node], variant), directory };
  return await findWebUi(
    { environment: {}, clock: systemClock, progress: silentProgress, signal },
    cluster,
  );
}

const installed = { "opt/cluster/etc/version.json": "{}" };
const plain: FoundWebUi = { url: "http://192.0.2.1/", authority: undefined };
const encrypted: FoundWebUi = {
  url: "https://192.0.2.1:8443/",
  authority: "https://192.0.2.1:8443/ca/cluster-ca.crt",
};

const platform = (web: PlatformFacts["web"]): Readonly<Record<string, string>> => ({
  "opt/cluster-platform/version.json": "{}",
  "opt/cluster-platform/platform.json": `${platformHead({ ...leastFacts, web })}\n`,
});

describe.skipIf(machinesLack !== undefined)("the web UI of a cluster whose key is here", () => {
  test.each([
    ["has nothing installed yet", plain, {}],
    ["has not written its configuration yet", plain, installed],
    [
      "has no TLS",
      plain,
      { ...installed, "opt/cluster/etc/bootstrap-config.json": '{"ssl_enabled": false}' },
    ],
    [
      "has TLS",
      encrypted,
      { ...installed, "opt/cluster/etc/bootstrap-config.json": '{"ssl_enabled": true}' },
    ],
  ])(
    "has the right URLs if the master %s",
    async (_, webUi, files: Readonly<Record<string, string>>) => {
      expect(await find(files)).toEqual(webUi);
    },
  );

  test.each([
    ["has nothing installed yet", undefined, {}],
    ["has no web UI", undefined, platform(undefined)],
    [
      "has one",
      { url: "http://192.0.2.1/ui", authority: undefined },
      platform({ port: 8080, path: "/ui", scheme: "http", certificate: undefined }),
    ],
    [
      "has one with TLS",
      { url: "https://192.0.2.1:8443/", authority: "/etc/ca.pem on the masters" },
      platform({ port: 9443, path: "/", scheme: "https", certificate: "/etc/ca.pem" }),
    ],
  ])("is what a platform that is a folder says, if the master %s", async (_, webUi, files) => {
    expect(await find(files, "none")).toEqual(webUi);
  });
});
