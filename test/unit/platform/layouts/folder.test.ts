import { expect, test } from "bun:test";
import { platformHead } from "../../../../src/platform/folder/platform-file.ts";
import { layoutNeeds, layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { hasTls, reportedLayout } from "../../../../src/platform/readiness/node-question.ts";
import { leastFacts } from "../../../support/platform-facts.ts";

const web = { port: 8443, path: "/ui", scheme: "https", certificate: "/etc/ca.pem" } as const;

test("a folder's layout has what its facts ask for", () => {
  const layout = folderLayout({
    ...leastFacts,
    ports: [2379],
    web,
    kernelModules: ["ip_vs"],
    conditions: ["docker", "clock-synchronized"],
  });
  expect(layout).toMatchObject({
    publicPorts: [8443, 2379],
    kernelModules: ["ip_vs"],
    web: {
      endpoint: { scheme: "https", port: 8443, path: "/ui" },
      authority: { file: "/etc/ca.pem" },
    },
    release: undefined,
  });
  expect(layout.needs).toContain("docker");
  expect(layoutNeeds(layout, "docker")).toBe(true);
  expect(layoutNeeds(layout, "cgroups-1")).toBe(false);
  expect(layout.conditions({ nodesKeepTime: false, configuration: {} })).toEqual(["docker"]);
  expect(layout.installedVariant({ variant: "enterprise" })).toBe("none");
});

test("without facts, it opens no port, needs no package and has no web UI", () => {
  const known = layouts.find(({ name }) => name === "folder")!;
  for (const layout of [known, folderLayout(leastFacts)]) {
    expect(layout).toMatchObject({
      publicPorts: [],
      packages: { apt: [], dnf: [] },
      kernelModules: [],
      web: undefined,
    });
    expect(layout.needs).toEqual(["bash", "curl", "tar", "gzip"]);
  }
});

test("another process learns the facts from a node", () => {
  const facts = platformHead({ ...leastFacts, web });
  const layout = reportedLayout({ layout: "folder", facts })!;
  expect(layout.web).toEqual(folderLayout({ ...leastFacts, web }).web);
  expect(hasTls(layout, { isTlsEnabled: undefined })).toBe(true);
  expect(hasTls(layouts[0], { isTlsEnabled: undefined })).toBeUndefined();
});

test.each([
  ["folder", ""],
  ["folder", "{"],
  ["folder", '{"name": "../x", "version": "1"}'],
  ["", ""],
  ["unknown", "{}"],
])("a node with the layout %p and the facts %j has none that could be used", (layout, facts) => {
  expect(reportedLayout({ layout, facts })).toBeUndefined();
});
