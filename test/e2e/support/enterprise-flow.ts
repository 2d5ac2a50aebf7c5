/**
 * The enterprise variant on any kind of machine: from the license key to a job (if there are agents), with TLS and the
 * superuser's login.
 */
import { expect } from "bun:test";
import { join } from "node:path";
import { clusterNames, makeCheckout } from "./checkout.ts";
import type { Ended } from "./executable.ts";

interface EnterpriseFlow {
  readonly id: string;
  readonly folder: string;
  readonly artifact: string;
  readonly agents: number;
  /** What `create` is told of its machines. */
  readonly machineArguments: readonly string[];
  run(words: readonly string[]): Promise<Ended>;
}

/** Leaves the cluster running. Its waiting has asked the masters over TLS, checked with the cluster's own authority. */
export async function runEnterpriseFlow(flow: EnterpriseFlow): Promise<void> {
  const { id, folder, artifact, agents, machineArguments, run } = flow;
  const license = join(folder, "license.txt");
  await Bun.write(license, "sample-license\n");
  const words =
    "create --variant enterprise --security-mode strict --public-agents 0 --wait --timeout 25m".split(
      " ",
    );
  const own = ["--agents", String(agents), "--license-key", license, ...machineArguments];
  const created = await run([...words, ...own, "-c", id, artifact]);
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${id}\n`,
  });
  const opened = await run(["web", "-c", id]);
  expect(opened.stdout).toMatch(/^https:\/\//);
  expect(opened.stderr).toContain("certificate authority");
  await expectTrustedWebUi(opened.stdout.trim(), { id, folder, run });
  if (agents > 0) await expectJobs(flow);
  await expectSynced(flow);
  const inspected = await run(["inspect", "-c", id, "--output", "json"]);
  expect(JSON.parse(inspected.stdout)).toMatchObject({
    cluster: { variant: "enterprise", state: "running" },
  });
}

async function expectJobs({ id, agents, run }: EnterpriseFlow): Promise<void> {
  const ran = await run(["run", "-c", id, "srun", `-N${agents}`, "hostname"]);
  expect(ran.stdout.trim().split("\n").toSorted()).toEqual(
    Array.from({ length: agents }, (_, n) => `agent-${n}`),
  );
}

async function expectSynced({ id, folder, run }: EnterpriseFlow): Promise<void> {
  const files = { tests: { "test_license.py": "" }, library: { "own.py": "" } };
  const checkout = await makeCheckout(
    join(folder, "enterprise-checkout"),
    "enterprise",
    files,
    clusterNames,
  );
  const synced = await run(["sync", "-c", id, checkout]);
  expect(synced.status, synced.stderr).toBe(0);
  expect((await run(["run", "-c", id, "ls"])).stdout).toContain("test_license.py");
}

/** As src/platform/README.md says: the authority's certificate comes over SSH. */
async function expectTrustedWebUi(
  url: string,
  { id, folder, run }: Pick<EnterpriseFlow, "id" | "folder" | "run">,
) {
  const authority = join(folder, "ca.crt");
  const words = "--no-test-env curl -ks https://127.0.0.1/ca/cluster-ca.crt".split(" ");
  await Bun.write(authority, (await run(["run", "-c", id, ...words])).stdout);
  const trusting =
    await Bun.$`curl -sS -o /dev/null -w ${"%{http_code}"} --cacert ${authority} ${url}`
      .nothrow()
      .quiet();
  expect(trusting.stdout.toString(), trusting.stderr.toString()).toBe("200");
  expect((await Bun.$`curl -sS ${url}`.nothrow().quiet()).stderr.toString()).toContain(
    "certificate",
  );
}
