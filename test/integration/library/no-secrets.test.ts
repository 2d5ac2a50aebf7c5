/** Whatever a program prints of what the library hands out, its environment isn't in it. test/integration/scripts/build-library.test.ts does it in Node. */

import { join } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "bun:test";
import { CloudBackend, Cluster, ContainerBackend, VmBackend } from "../../../src/index.ts";
import { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const secret = "hush-0123456789";

/** Every form in which a program may print or log a value. */
function printed(value: unknown): string {
  const all = { showHidden: true, depth: null, getters: true } as const;
  const forms = [
    inspect(value),
    inspect(value, all),
    inspect(value, { ...all, customInspect: false }),
  ];
  const own = Object(value) === value ? Object.getOwnPropertyNames(value) : [];
  return [
    ...forms,
    Bun.inspect(value, { depth: 20 }),
    JSON.stringify(value),
    JSON.stringify({ ...(value as object) }),
    JSON.stringify(
      Object.fromEntries(own.map((name) => [name, (value as Record<string, unknown>)[name]])),
    ),
    String(value),
  ].join("\n");
}

test("no backend, cluster, node or error shows the environment or the options with which it was made", async () => {
  await using scratch = await scratchFolder();
  await using cloud = await LocalCloud.start({ driver: "in-process", directory: scratch.path });
  cloud.answers.replace([
    { pattern: "e2e-first-contact", replaceHostKey: true },
    { pattern: "resolv\\.conf", stdout: "10.0.0.2\n" },
    { pattern: "\\bexec false\\b", status: 1 },
    { pattern: "", readsStdin: true },
  ]);
  const state = join(scratch.path, "state");
  const environment = { ...cloud.environment, XDG_STATE_HOME: state, DEPLOY_TOKEN: secret };
  const { region } = cloud;
  const backend = new CloudBackend({ region, linuxDistribution: "debian-12", environment });
  const request = { variant: "oss", agents: 0, publicAgents: 0 } as const;
  await using cluster = await Cluster.create(backend, request);
  const [master] = cluster.masters;
  const nowhere = {
    ...environment,
    AWS_ENDPOINT_URL_EC2: "http://127.0.0.1:1",
    PATH: scratch.path,
  };
  const unreachable = new CloudBackend({ region, environment: nowhere });
  const containers = new ContainerBackend({ engine: "docker", environment: nowhere });
  const image = `https://user:${secret}@images.example.com/disk.qcow2`;
  const machines = new VmBackend({ environment: nowhere, image, imageSha256: "0".repeat(64) });
  const opened = await backend.open(neverAborted);
  const signal = AbortSignal.timeout(3_000);
  const failures = [
    await failureOf(master.run({ args: ["false"] })),
    await failureOf(Cluster.create(backend, { ...request, clusterId: cluster.id })),
    await failureOf(Cluster.find(unreachable, "mine", { cancelSignal: signal })),
    await failureOf(Cluster.create(containers, request)),
    await failureOf(Cluster.create(machines, request)),
  ];
  const handedOut = { backend, containers, machines, opened, cluster, master, failures };
  for (const [name, value] of [
    ...Object.entries({ ...handedOut, all: handedOut }),
    ...failures.entries(),
  ]) {
    for (const each of [secret, cloud.secretAccessKey])
      expect(printed(value), String(name)).not.toContain(each);
  }
  expect(JSON.parse(JSON.stringify(backend))).toEqual({ distribution: "debian-12" });
});
