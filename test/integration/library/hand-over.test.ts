/** A cluster is handed over by the library: two state folders are two computers with the same account. */

import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createVmBackend } from "../../../src/backend/vm/vm-backend.ts";
import { exportCluster } from "../../../src/cluster/export-cluster.ts";
import { CloudBackend, Cluster } from "../../../src/index.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { openFixture, region } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("another computer can use an exported cluster, in the cluster's own region alone", async () => {
  await using fixture = await openFixture({});
  const { environment } = fixture.runtime;
  await fixture.create(await fixture.open(region), fixture.request("nightly", {}), neverAborted);
  const options = { linuxDistribution: "debian-12" } as const;
  const text = await (
    await Cluster.find(new CloudBackend({ ...options, region, environment }), "nightly")
  ).export();
  expect(JSON.parse(text)).toMatchObject({ clusterId: "nightly", region });
  const state = join(environment["HOME"]!, "other");
  const there = { ...options, environment: { ...environment, XDG_STATE_HOME: state } };
  const elsewhere = await failureOf(
    Cluster.import(new CloudBackend({ ...there, region: "us-east-1" }), text),
  );
  expect(elsewhere).toMatchObject({
    id: "bad-usage",
    facts: { region: "us-west-2" },
    message: expect.stringContaining("us-east-1"),
  });
  const damaged = await failureOf(
    Cluster.import(new CloudBackend({ ...there, region }), text.replace("nightly", "x")),
  );
  expect(damaged).toMatchObject({ id: "bad-usage", message: expect.stringContaining("checksum") });
  expect(await readdir(state).catch(() => [])).toEqual([]);
  const imported = await Cluster.import(new CloudBackend({ ...there, region }), text);
  expect(imported.sshKeyPath).toStartWith(state);
  fixture.cloud.answers.replace([
    { pattern: "\\bexec hostname\\b", stdout: "{{hostname}}\n" },
    { pattern: "", readsStdin: true },
  ]);
  const { stdout } = await imported.masters[0].run({ args: ["hostname"] });
  expect(stdout).toBe(`ip-${imported.masters[0].privateAddress!.replaceAll(".", "-")}\n`);
  expect(await imported.export()).toBe(text);
  const hosts = await readFile(creationFiles(imported.directory).knownHosts, "utf8");
  expect(hosts.trim().split("\n")).toHaveLength(3);
});

test("clusters on this computer cannot be handed over", async () => {
  const environment = { HOME: "/nowhere" };
  const backend = createVmBackend({ environment, clock: systemClock, progress: silentProgress });
  expect(await failureOf(exportCluster(backend, "default", neverAborted))).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("(vm)"),
  });
});
