/** What the enterprise variant is on any machines: from a license key to a job, with TLS and the superuser's login. */
import { expect } from "bun:test";
import { join } from "node:path";
import type { Ended } from "./executable.ts";

interface EnterpriseFlow {
  readonly id: string;
  readonly folder: string;
  readonly artifact: string;
  /** What `create` is told of its machines. */
  readonly machineWords: readonly string[];
  run(words: readonly string[]): Promise<Ended>;
}

/** Leaves the cluster running. Its waiting has asked the masters over TLS, checked with the cluster's own authority. */
export async function runEnterpriseFlow({ id, folder, artifact, machineWords, run }: EnterpriseFlow): Promise<void> {
  const license = join(folder, "license.txt");
  await Bun.write(license, "sample-license\n");
  const words = "create --variant enterprise --security-mode strict --public-agents 0 --wait --timeout 10m".split(" ");
  const created = await run([...words, "--license-key", license, ...machineWords, "-c", id, artifact]);
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({ status: 0, stdout: `${id}\n` });
  const opened = await run(["web", "-c", id]);
  expect(opened.stdout).toMatch(/^https:\/\//);
  expect(opened.stderr).toContain("certificate authority");
  await expectTrustedWebUi(opened.stdout.trim(), { id, folder, run });
  expect((await run(["run", "-c", id, "srun", "-N1", "hostname"])).stdout).toBe("agent-0\n");
  const inspected = await run(["inspect", "-c", id, "--output", "json"]);
  expect(JSON.parse(inspected.stdout)).toMatchObject({ cluster: { variant: "enterprise", state: "running" } });
}

/** As the README has it: the authority's certificate comes over SSH. */
async function expectTrustedWebUi(url: string, { id, folder, run }: Pick<EnterpriseFlow, "id" | "folder" | "run">) {
  const authority = join(folder, "ca.crt");
  const words = "--no-test-env curl -ks https://127.0.0.1/ca/cluster-ca.crt".split(" ");
  await Bun.write(authority, (await run(["run", "-c", id, ...words])).stdout);
  const trusting = await Bun.$`curl -sS -o /dev/null -w ${"%{http_code}"} --cacert ${authority} ${url}`
    .nothrow()
    .quiet();
  expect(trusting.stdout.toString(), trusting.stderr.toString()).toBe("200");
  expect((await Bun.$`curl -sS ${url}`.nothrow().quiet()).stderr.toString()).toContain("certificate");
}
