import { expect, test } from "bun:test";
import { assertFits } from "../../../../src/cluster/upgrade/plan-upgrade.ts";
import type { ArtifactHead } from "../../../../src/platform/artifact/artifact-head.ts";
import { type PlatformFacts, platformHead } from "../../../../src/platform/folder/platform-file.ts";
import { clusterLayout } from "../../../../src/platform/layouts/cluster.ts";
import { dcosLayout } from "../../../../src/platform/layouts/dcos.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { parseNodeVersion } from "../../../../src/platform/upgrade/node-version.ts";
import { exampleCluster, exampleNode } from "../../../support/install-example.ts";
import { leastFacts } from "../../../support/platform-facts.ts";

const web = { port: 80, path: "/", scheme: "http", certificate: undefined } as const;
const withWeb: PlatformFacts = { ...leastFacts, web };

const release = (changes: Partial<ArtifactHead> = {}): ArtifactHead => ({
  variant: "oss",
  layout: dcosLayout,
  platform: undefined,
  hasUpgrade: true,
  sizeBytes: undefined,
  ...changes,
});

const folder = (platform: PlatformFacts): ArtifactHead =>
  release({ variant: "none", layout: folderLayout(platform), platform });

const installed = (layout: string, name = "", version = "1.0", facts?: PlatformFacts): string =>
  [
    `layout=${layout}`,
    `version=${JSON.stringify({ name, version })}`,
    ...(facts ? [`facts=${platformHead(facts)}`] : []),
  ].join("\n");

const meter = installed("folder", "meter", "1.0", leastFacts);
const fits = (head: ArtifactHead, nodes: readonly string[]) =>
  assertFits(
    head,
    { artifact: { kind: "file", path: "/a.sh", shown: "a.sh" } },
    {
      cluster: exampleCluster([], "oss"),
      surveyed: nodes.map((output, index) => ({
        node: exampleNode({ index }),
        found: parseNodeVersion(output),
      })),
    },
  );

test.each([
  ["dcos", release(), [installed("dcos")]],
  // Its second line names no layout.
  ["dcos", release({ layout: undefined, variant: undefined }), [installed("dcos")]],
  ["folder", folder(leastFacts), [meter, meter]],
  ["folder", folder(withWeb), [installed("folder", "meter", "1.0", withWeb)]],
  // Nodes whose facts cannot be read.
  ["folder", folder(withWeb), [installed("folder", "meter")]],
])("an upgrade of the layout %s fits", (name, head, nodes) => {
  expect(fits(head, nodes).name).toBe(name);
});

test.each([
  ["not-installed", "agent_1", release(), [installed("dcos"), ""]],
  ["not-installed", "agent_0", release(), [installed("dcos", "", "")]],
  ["artifact-invalid", "have other paths", release(), [installed("cluster")]],
  ["artifact-invalid", "have other paths", release(), [installed("unknown")]],
  [
    "artifact-invalid",
    "cannot upgrade",
    release({ layout: clusterLayout }),
    [installed("cluster")],
  ],
  ["variant-mismatch", "enterprise", release({ variant: "enterprise" }), [installed("dcos")]],
  [
    "artifact-invalid",
    'agent_1 has "other"',
    folder(leastFacts),
    [meter, installed("folder", "other")],
  ],
  ["artifact-invalid", "stays none", folder(withWeb), [meter]],
  [
    "artifact-invalid",
    "its web UI is none",
    folder(leastFacts),
    [installed("folder", "meter", "1.0", withWeb)],
  ],
])("an upgrade is refused: %s, %s", (id, text, head, nodes) => {
  expect(() => fits(head, nodes)).toThrow(
    expect.objectContaining({ id, message: expect.stringContaining(text) }),
  );
});
