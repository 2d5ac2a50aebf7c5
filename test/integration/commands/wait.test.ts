/** `wait` on nodes that are ready. */
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { durationText } from "../../../src/system/amounts.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { junitOutcomes } from "../../support/junit.ts";
import { installedCluster } from "./installed-cluster.ts";

test.skipIf(machinesLack !== undefined)(
  `says that the cluster is ready, appends a table to the summary, and writes a report (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await installedCluster();
    const summary = join(opened.folder, "summary.md");
    const ran = await opened.run("wait --skip-http-checks --summary --junit new/report.xml", {
      GITHUB_STEP_SUMMARY: summary,
    });
    expect(ran.data).toMatchObject({ cluster: { id: "example" }, ready: true });
    const seconds = Number(ran.data?.["seconds"]);
    expect(seconds).toBeWithin(1, 3600);
    expect(ran.told).toEqual([`Cluster "example" is ready after ${durationText(seconds)}.`]);
    expect(junitOutcomes(await readFile(join(opened.folder, "new", "report.xml")))).toEqual({
      "master_0 is ready": "passed",
      "agent_0 is ready": "passed",
      "The platform is ready": "passed",
    });
    expect(await readFile(summary, "utf8")).toMatch(
      /^### Cluster ready\n\n\| Cluster \| `example` \|\n\| --- \| --- \|\n\| Place \| `cloud, us-west-2` \|\n\| Variant \| `oss, debian-12` \|\n\| Nodes \| `1 master, 1 agent, 0 public agents` \|\n\| Ready after \| `[\d a-z]+` \|\n\n$/,
    );
  },
);
