import type { Backend, CreationRequest } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import type { CreateRequest, NewMachines } from "../../../../src/cluster/create/create-request.ts";
import { planMachines, summarizeCreation } from "../../../../src/cluster/create/plan-machines.ts";
import type { Variant } from "../../../../src/model/cluster-record.ts";
import type { PlatformFacts } from "../../../../src/platform/folder/platform-file.ts";
import { clusterLayout } from "../../../../src/platform/layouts/cluster.ts";
import { dcosLayout } from "../../../../src/platform/layouts/dcos.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { added, exampleCluster, examplePlan } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { leastFacts } from "../../../support/platform-facts.ts";

const machines: NewMachines<never> = {
  variant: "oss",
  distribution: "debian-12",
  counts: { master: 1, agent: 0, public_agent: 0 },
  options: {} as never,
};
const request = (changes: Partial<CreateRequest<never>>): CreateRequest<never> =>
  ({ clusterId: "base", machines, ...changes }) as CreateRequest<never>;

type Install = Parameters<typeof examplePlan>[1];

/** What the backend is asked for. */
async function planned(install: Install | undefined, changes: Partial<CreateRequest<never>> = {}) {
  const plan = async (asked: unknown) => asked;
  const target = { backend: { name: "cloud", plan } as unknown as Backend<never> };
  return planMachines(
    request(changes),
    { ...target, install: install && examplePlan("/a", install) },
    neverAborted,
  ) as Promise<unknown>;
}

const debian: PlatformFacts["packages"] = { apt: ["etcd"], dnf: [] };
const both: PlatformFacts["packages"] = { apt: ["etcd"], dnf: ["etcd"] };
const web = { scheme: "https", port: 8443, path: "/ui", certificate: undefined } as const;
const folder = (facts: Partial<PlatformFacts>): Install => ({
  layout: folderLayout({ ...leastFacts, ...facts }),
  variant: "none",
});
const security = (variant: Variant, securityMode: "disabled" | "strict" | undefined): Install => ({
  variant,
  configuration: { ...added({}), securityMode },
});

const unprepared = { imagePreparation: undefined };
test.each<[string, Install | undefined, Readonly<Record<string, unknown>>]>([
  [
    "an unknown artifact",
    undefined,
    { needsCgroups1: false, folderDistribution: undefined, ...unprepared, webUi: undefined },
  ],
  [
    "a release",
    { layout: clusterLayout },
    { needsCgroups1: false, folderDistribution: undefined, ...unprepared, webUi: "http" },
  ],
  [
    "DC/OS",
    { layout: dcosLayout },
    { needsCgroups1: true, imagePreparation: { name: "dcos" }, webUi: "http" },
  ],
  ["an unknown layout", { layout: undefined }, { openPorts: [80, 443], webUi: "http" }],
  ["an enterprise release", security("enterprise", undefined), { webUi: "https" }],
  ["one without security", security("enterprise", "disabled"), { webUi: "http" }],
  [
    "a folder",
    folder({}),
    { folderDistribution: "debian-12", ...unprepared, openPorts: [], webUi: "none" },
  ],
  [
    "a folder for Debian",
    folder({ packages: debian }),
    { folderDistribution: "debian-12", imagePreparation: { name: "folder" } },
  ],
  ["a folder for all", folder({ packages: both }), { folderDistribution: "debian-12" }],
  [
    "a folder for dnf",
    folder({ packages: { apt: [], dnf: ["jq"] } }),
    { folderDistribution: "almalinux-9" },
  ],
  [
    "a folder for cgroups 1",
    folder({ conditions: ["cgroups-1"] }),
    { folderDistribution: "almalinux-8", needsCgroups1: true },
  ],
  [
    "a folder with a page",
    folder({ web, ports: [7] }),
    { openPorts: [8443, 7], webUi: "https:8443/ui" },
  ],
])("the machines for %s have what it needs", async (_, install, needs) => {
  const { platform: _platform, ...others } = machines;
  expect(await planned(install)).toMatchObject({ clusterId: "base", ...others, ...needs });
});

test("for an unknown artifact, the ports of all releases are open, each once", async () => {
  expect(await planned(undefined)).toMatchObject({ openPorts: [80, 443, 9000, 61001] });
});

test("a platform that is installed later counts like one that is installed now", async () => {
  const platform = { ...leastFacts, web, packages: debian };
  const expected = {
    folderDistribution: "debian-12",
    openPorts: [8443],
    webUi: "https:8443/ui",
    platform: "meter 8443 1.0",
  };
  expect(await planned(undefined, { machines: { ...machines, platform } })).toMatchObject(expected);
});

test("machines know the platform that is installed now, with its ports; a release is known by its variant", async () => {
  const facts = { ...leastFacts, web, ports: [7] };
  expect(await planned({ ...folder(facts), platform: facts })).toMatchObject({
    platform: "meter 8443,7 1.0",
  });
  expect(await planned({ layout: clusterLayout })).toMatchObject({ platform: undefined });
});

test("a backend whose clusters end at a time of their own takes no lifetime", async () => {
  expect(await failureOf(planned(undefined, { lifetimeMs: 1 }))).toMatchObject({
    id: "bad-usage",
    hint: "Leave out `lifetime`.",
  });
});

test("copies are planned by the backend that has the snapshot or reads the file", async () => {
  const source = exampleCluster([], "oss");
  const snapshots = {
    planCopy: async (asked: unknown) => ({ copy: asked }),
  };
  const plan = async (from: object, has: object) => {
    const backend = {
      name: "vm",
      find: async () => source,
      ...has,
    };
    const asked = request({ machines: { from, copies: 2 } as never, lifetimeMs: 5 });
    return planMachines(
      asked,
      { backend: backend as unknown as Backend<never>, install: undefined },
      neverAborted,
    );
  };
  const name = { clusterId: "base", name: "installed" };
  const file = { location: { url: "https://example.com/x" } };
  const common = { clusterId: "base", copies: 2, lifetimeMs: 5 };
  expect((await plan(name, { local: { snapshots } })) as unknown).toEqual({
    copy: { ...common, source, snapshot: "installed" },
  });
  expect((await plan(file, { local: { snapshots } })) as unknown).toEqual({
    copy: { ...common, file },
  });
  for (const from of [name, file])
    expect(await failureOf(plan(from, {}))).toMatchObject({ id: "bad-usage" });
});

test("a dry run finds out what a launch would, and names the platform of a folder", async () => {
  const rehearsals: unknown[] = [];
  const creation = {
    summary: {
      counts: { master: 1, agent: 0, public_agent: 0 },
      lines: [["Image", "debian-12"]],
      facts: { image: "debian-12" },
    },
  };
  const plan = async ({ isRehearsal }: CreationRequest<never>) => {
    rehearsals.push(isRehearsal);
    return creation;
  };
  const backend = { name: "cloud", plan } as unknown as Backend<never>;
  const summary = async (install: Install) =>
    summarizeCreation(request({}), { backend, install: examplePlan("/a", install) }, neverAborted);
  expect(await summary({ platform: leastFacts })).toMatchObject({
    lines: [
      ["Platform", "meter 1.0"],
      ["Image", "debian-12"],
    ],
    facts: { platform: { name: "meter", version: "1.0" }, image: "debian-12" },
  });
  expect((await summary({})).lines).toEqual([["Image", "debian-12"]]);
  expect(rehearsals).toEqual([true, true]);
});
