/** What JavaScript can pass to the library: every argument is checked when it is passed, before anything happens. */

import { join } from "node:path";
import { expect, test } from "bun:test";
import { CloudBackend, Cluster, ContainerBackend, VmBackend } from "../../../src/index.ts";
import { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { leftIn, nothing } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Calls a function as a program without types does. */
type Untyped = Record<string, (...given: readonly unknown[]) => Promise<unknown>>;
const untyped = (target: unknown): Untyped => target as Untyped;

interface Fixture extends AsyncDisposable {
  readonly cloud: LocalCloud;
  readonly backend: CloudBackend;
}

async function openFixture(): Promise<Fixture> {
  const scratch = await scratchFolder();
  const cloud = await LocalCloud.start({ driver: "in-process", directory: scratch.path });
  cloud.answers.replace([
    { pattern: "e2e-first-contact", replaceHostKey: true },
    { pattern: "resolv\\.conf", stdout: "10.0.0.2\n" },
    { pattern: "", readsStdin: true },
  ]);
  const environment = { ...cloud.environment, XDG_STATE_HOME: join(scratch.path, "state") };
  const backend = new CloudBackend({
    region: cloud.region,
    linuxDistribution: "debian-12",
    environment,
  });
  return {
    cloud,
    backend,
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const problemsOf = async (failing: Promise<unknown>): Promise<readonly unknown[]> => {
  const { id, message, facts } = await failureOf(failing);
  expect(id, message).toBe("bad-usage");
  const problems = facts?.["problems"];
  return Array.isArray(problems) ? problems : [message];
};

/** Each request, and the arguments that its problems name. */
const requests: readonly (readonly [given: unknown, names: readonly string[]])[] = [
  [{ variant: "none" }, ["variant"]],
  [{ variant: "OSS" }, ["variant"]],
  [{ variant: 7, masters: 1 }, ["variant"]],
  [{ variant: "oss", master: 3 }, ["master"]],
  [
    { variant: "oss", masters: "1", agents: "2", publicAgents: 0.5 },
    ["masters", "agents", "publicAgents"],
  ],
  [{ variant: "oss", agents: 600, publicAgents: 600 }, ["masters"]],
  [{ variant: "oss", clusterId: 7 }, ["clusterId"]],
  [{ variant: "oss", clusterId: "" }, ["clusterId"]],
  [{ variant: "oss", timeoutMs: "60s" }, ["timeoutMs"]],
  [{ variant: "oss", timeoutMs: Number.NaN }, ["timeoutMs"]],
  [{ variant: "oss", timeoutMs: 2 ** 31 }, ["timeoutMs"]],
  [{ variant: "oss", lifetimeMs: "4h" }, ["lifetimeMs"]],
  [{ variant: "oss", keepOnFailure: "no" }, ["keepOnFailure"]],
  [{ variant: "oss", cancelSignal: {} }, ["cancelSignal"]],
  [{ variant: "oss", sshKey: "/nowhere/key" }, ["/nowhere/key"]],
  [{ variant: "oss", from: "default:installed", masters: 1 }, ["variant", "masters"]],
  [{ from: 7 }, ["from"]],
  [{ from: "installed" }, ["from"]],
  [{ from: null }, ["from"]],
  [undefined, ["object"]],
  [null, ["object"]],
  ["oss", ["object"]],
];

test("a creation with a wrong or missing argument names it, and requests nothing", async () => {
  await using fixture = await openFixture();
  for (const [given, names] of requests) {
    const problems = await problemsOf(untyped(Cluster)["create"]!(fixture.backend, given));
    expect(problems).toHaveLength(names.length);
    for (const [index, name] of names.entries())
      expect(problems[index], Bun.inspect(given)).toContain(name);
  }
  for (const backend of [undefined, null, {}, CloudBackend, "cloud"]) {
    expect(await problemsOf(untyped(Cluster)["create"]!(backend, { variant: "oss" }))).toHaveLength(
      1,
    );
    expect(await problemsOf(untyped(Cluster)["find"]!(backend, "default"))).toHaveLength(1);
    expect(await problemsOf(untyped(Cluster)["import"]!(backend, "{}"))).toHaveLength(1);
    expect(await problemsOf(untyped(Cluster)["list"]!(backend))).toHaveLength(1);
  }
  for (const id of [undefined, 7, "../x", ""])
    await problemsOf(untyped(Cluster)["find"]!(fixture.backend, id));
  await problemsOf(
    untyped(Cluster)["find"]!(fixture.backend, "default", { signal: AbortSignal.timeout(1) }),
  );
  for (const text of [undefined, 7, "", {}])
    await problemsOf(untyped(Cluster)["import"]!(fixture.backend, text));
  expect(fixture.cloud.requests.entries).toEqual([]);
});

test("a copy that is asked to be offline is refused: that is its snapshot's matter", async () => {
  for (const backend of [new ContainerBackend({ offline: true }), new VmBackend({ offline: true })])
    expect(
      await problemsOf(untyped(Cluster)["create"]!(backend, { from: "default:installed" })),
    ).toEqual([expect.stringContaining("`offline`")]);
});

test("a cluster without a variant is for a platform that has none, and is waited for as such", async () => {
  await using fixture = await openFixture();
  await using cluster = await Cluster.create(fixture.backend, {
    clusterId: "mine",
    agents: 0,
    publicAgents: 0,
  });
  expect(cluster.variant).toBe("none");
  const failure = await failureOf(cluster.waitForClusterOss());
  expect(failure).toMatchObject({ id: "bad-usage", hint: "Call waitForCluster." });
});

test("a request that its caller changes meanwhile is the one that was checked", async () => {
  await using fixture = await openFixture();
  const request = { variant: "oss" as const, clusterId: "mine", agents: 0, publicAgents: 0 };
  const creating = Cluster.create(fixture.backend, request);
  Object.assign(request, { variant: undefined, clusterId: "not one", install: true });
  await using cluster = await creating;
  expect({ id: cluster.id, variant: cluster.variant }).toEqual({ id: "mine", variant: "oss" });
});

/** Each operation of a cluster or a node, its arguments, and what its problems name. */
const operations: readonly (readonly [
  name: string,
  given: readonly unknown[],
  names: readonly string[],
])[] = [
  ["installFromPath", [], ["object"]],
  ["installFromPath", [{}], ["buildArtifact"]],
  [
    "installFromPath",
    [{ buildArtifact: 7, clusterConfig: [], ipDetectPath: "" }],
    ["build", "clusterC", "ipDetect"],
  ],
  ["installFromPath", [{ ...minimal(), extraConfig: {} }], ["extraConfig"]],
  [
    "installFromPath",
    [{ ...minimal(), copyToMaster: [{ source: "a", target: "b" }] }],
    ["copyToMaster"],
  ],
  ["installFromPath", [{ ...minimal(), copyToMaster: ["a:/b"] }], ["copyToMaster"]],
  ["installFromPath", [{ ...minimal(), timeoutMs: 0 }], ["timeoutMs"]],
  [
    "installFromPath",
    [{ ...minimal(), clusterConfig: { a: [{ b: () => 1 }] } }],
    ['"b": must be plain data'],
  ],
  ["installFromPath", [{ ...minimal(), clusterConfig: { a: 1n } }], ["not of the type bigint"]],
  ["installFromPath", [{ ...minimal(), clusterConfig: { a: endless() } }], ["contains itself"]],
  [
    "installFromPath",
    [{ ...minimal(), enableSelinuxEnforcing: true }],
    ["debian-12 comes without SELinux"],
  ],
  ["waitForClusterOss", [{ timeoutMs: "1h", skipHttpChecks: 1 }], ["timeoutMs", "skipHttpChecks"]],
  ["waitForClusterOss", [{ timeout: 5 }], ["timeout"]],
  [
    "waitForClusterEnterprise",
    [{ superuserPassword: 7, superuserUsername: "" }],
    ["Username", "Password"],
  ],
  ["sync", [], ["checkoutDir"]],
  ["sync", ["/nowhere", 7], ["object"]],
  ["run", [{ args: [], nodes: [], reject: true }], ["reject", "args", "nodes"]],
  ["saveLogs", [{ folder: 7 }], ["folder"]],
  ["saveLogs", ["/tmp/logs"], ["object"]],
  ["export", [{ recipients: "age1x" }], ["recipients"]],
  ["export", [{ recipients: [7] }], ["recipients"]],
  ["snapshot", [7], ["name"]],
  ["restore", ["../x"], ["name"]],
  ["snapshots", [null], ["object"]],
  ["destroy", [{ cancelSignal: "now" }], ["cancelSignal"]],
];

function endless() {
  const list: unknown[] = [];
  list.push({ list });
  return list;
}

function minimal() {
  return { buildArtifact: "/nowhere/a.sh", clusterConfig: {}, ipDetectPath: "/nowhere/ip-detect" };
}

const commands: readonly (readonly [name: string, given: unknown, names: readonly string[]])[] = [
  ["run", undefined, ["object"]],
  ["run", ["hostname"], ["object"]],
  ["run", {}, ["args"]],
  ["run", { args: "hostname" }, ["args"]],
  ["run", { args: [] }, ["args"]],
  ["run", { args: ["echo", 7] }, ["args"]],
  ["run", { args: ["echo", "a\0b"] }, ["args"]],
  ["run", { args: ["env"], env: { A: 1 } }, ["env"]],
  ["run", { args: ["env"], env: { "A B": "1" } }, ["env"]],
  [
    "run",
    { args: ["env"], cwd: "here", timeoutMs: -1, asRoot: 0, reject: "no" },
    ["cwd", "asRoot", "reject", "timeoutMs"],
  ],
  ["run", { args: ["cat"], input: 7, onOutput: {} }, ["input", "onOutput"]],
  ["run", { args: ["id"], user: "nobody" }, ["user"]],
  ["fetch", {}, ["remote", "local"]],
  ["fetch", { remote: "a", local: "b" }, ["remote"]],
  ["fetch", { remote: "/a\nb", local: "b" }, ["remote"]],
];

test("every operation of a cluster and its nodes checks its arguments before it reaches a node", async () => {
  await using fixture = await openFixture();
  const options = { variant: "oss", agents: 0, publicAgents: 0 } as const;
  await using cluster = await Cluster.create(fixture.backend, options);
  const answered = fixture.cloud.answers.answered.length;
  fixture.cloud.requests.clear();
  const calls = [
    ...operations.map(
      ([name, given, names]) => [untyped(cluster)[name]!.bind(cluster, ...given), names] as const,
    ),
    ...commands.map(([name, given, names]) => {
      const [master] = cluster.masters;
      return [untyped(master)[name]!.bind(master, given), names] as const;
    }),
  ];
  for (const [call, names] of calls) {
    const problems = await problemsOf(call());
    expect(problems).toHaveLength(names.length);
    for (const [index, name] of names.entries()) expect(problems[index]).toContain(name);
  }
  expect(fixture.cloud.answers.answered).toHaveLength(answered);
  expect(fixture.cloud.requests.entries).toEqual([]);
});

test("the constructors refuse options that don't exist, are missing, or have the wrong type", () => {
  const construct = (Backend: unknown, given: unknown) => (): unknown =>
    new (Backend as new (options: unknown) => unknown)(given);
  const wrong: readonly (readonly [unknown, unknown, string])[] = [
    [CloudBackend, undefined, "object"],
    [CloudBackend, {}, "`region`"],
    [CloudBackend, { region: "us-west-2", instance: "m5.large" }, '"instance"'],
    [CloudBackend, { region: "us-west-2", image: "ami-0123456789abcdef0" }, "`image`"],
    [CloudBackend, { region: "us-west-2", image: { id: "ami-0123456789abcdef0" } }, "`image`"],
    [CloudBackend, { region: "us-west-2", customTags: "owner:me" }, "`customTags`"],
    [CloudBackend, { region: "us-west-2", customTags: { owner: 7 } }, "`customTags`"],
    [CloudBackend, { region: "us-west-2", adminCidrs: "192.0.2.0/24" }, "`adminCidrs`"],
    [CloudBackend, { region: "us-west-2", environment: "A=1" }, "`environment`"],
    [CloudBackend, { region: "us-west-2", environment: { A: 1 } }, "`environment`"],
    [ContainerBackend, "docker", "object"],
    [ContainerBackend, { engine: "lxc" }, "`engine`"],
    [ContainerBackend, { customVolumes: [null] }, "`customVolumes`"],
    [ContainerBackend, { memory: {} }, "`memory`"],
    [ContainerBackend, { onProgress: "stderr" }, "`onProgress`"],
    [VmBackend, null, "object"],
    [VmBackend, { cpus: true }, "`cpus`"],
    [VmBackend, { disk: "20g" }, '"disk"'],
  ];
  for (const [Backend, given, name] of wrong)
    expect(construct(Backend, given), Bun.inspect(given)).toThrow(name);
});

test("a cluster in the cloud takes no lifetime: it ends at a time of its own, and nothing is created", async () => {
  await using fixture = await openFixture();
  const failure = await failureOf(
    Cluster.create(fixture.backend, { variant: "oss", lifetimeMs: 60_000 }),
  );
  expect(failure).toMatchObject({ id: "bad-usage", hint: "Leave out `lifetimeMs`." });
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("errors and reports name options as the library does", async () => {
  await using fixture = await openFixture();
  fixture.cloud.behaviour.change({ bootDelayMs: [60_000] });
  const failure = await failureOf(
    Cluster.create(fixture.backend, { variant: "oss", timeoutMs: 2_000 }),
  );
  expect(failure.id).toBe("deadline-passed");
  expect(failure.hint).toContain("`timeoutMs`");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});
