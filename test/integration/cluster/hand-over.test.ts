/** A cluster is handed over from one state folder to another: two computers with the same account. */

import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createCloudBackend } from "../../../src/backend/cloud/cloud-backend.ts";
import type { CloudOptions } from "../../../src/backend/cloud/options.ts";
import type { Backend } from "../../../src/backend/contract.ts";
import {
  type HandOver,
  exportCluster,
  parseHandOver,
} from "../../../src/cluster/export-cluster.ts";
import { importCluster } from "../../../src/cluster/import-cluster.ts";
import { CloudBackend, Cluster } from "../../../src/index.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { parseKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import type { Runtime } from "../../../src/system/runtime.ts";
import { type CloudFixture, openFixture, region } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { wireKey } from "../../support/ssh-options.ts";

/** A created cluster, what its computer exported, and another computer. */
interface HandOverFixture extends AsyncDisposable {
  readonly fixture: CloudFixture;
  readonly cluster: ClusterRecord;
  readonly handOver: HandOver;
  readonly other: {
    readonly runtime: Runtime;
    readonly backend: Backend<CloudOptions>;
    readonly state: string;
  };
}

async function openHandOver(): Promise<HandOverFixture> {
  const fixture = await openFixture({});
  const here = await fixture.open(region);
  const cluster = await fixture.create(here, fixture.request("nightly", {}), neverAborted);
  const handOver = await parseHandOver(
    await exportCluster(here, "nightly", neverAborted),
    "x.json",
  );
  const state = join(fixture.runtime.environment["HOME"]!, "other");
  const runtime = {
    ...fixture.runtime,
    environment: { ...fixture.runtime.environment, XDG_STATE_HOME: state },
  };
  const backend = await createCloudBackend({ ...runtime, signal: neverAborted }, { region });
  return {
    fixture,
    cluster,
    handOver,
    other: { runtime, backend, state },
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

const importThere = async (
  { other }: HandOverFixture,
  handOver: HandOver,
): Promise<ClusterRecord> =>
  importCluster({ ...other.runtime, signal: neverAborted }, other.backend, handOver);

/** The other computer has nothing. */
const expectUntouched = async ({ other }: HandOverFixture): Promise<void> =>
  expect(await readdir(other.state).catch(() => [])).toEqual([]);

// Shows R116.
test("another computer waits for the cluster and runs commands on it, strictly with the pinned host keys", async () => {
  await using handedOver = await openHandOver();
  const { cluster, fixture, handOver, other } = handedOver;
  const imported = await importThere(handedOver, handOver);
  const [from, to] = [creationFiles(cluster.directory), creationFiles(imported.directory)];
  expect(to.privateKey).toStartWith(other.state);
  expect(await readFile(to.privateKey, "utf8")).toBe(await readFile(from.privateKey, "utf8"));
  expect((await readFile(to.knownHosts, "utf8")).split("\n").toSorted()).toEqual(
    (await readFile(from.knownHosts, "utf8")).split("\n").toSorted(),
  );
  const modes = [imported.directory, to.privateKey, to.knownHosts].map(
    async (path) => (await stat(path)).mode & 0o777,
  );
  expect(await Promise.all(modes)).toEqual([0o700, 0o600, 0o600]);
  fixture.cloud.answers.replace([
    {
      pattern: "e2e-readiness",
      readsStdin: true,
      stdout: "layout=cluster\nstatus=exit 0\nunit=active\ncheck.status=0\nconfig={}\n",
    },
    { pattern: "\\bexec hostname\\b", stdout: "{{hostname}}\n" },
    { pattern: "", readsStdin: true },
  ]);
  const { environment } = other.runtime;
  const found = await Cluster.find(
    new CloudBackend({ region, linuxDistribution: "debian-12", environment }),
    "nightly",
  );
  await found.waitForClusterOss({ skipHttpChecks: true });
  const { stdout } = await found.masters[0].run({ args: ["hostname"] });
  expect(stdout).toBe(`ip-${imported.nodes[0]!.privateAddress?.replaceAll(".", "-")}\n`);
  // The cluster can be imported again, also on the computer that created it.
  await importThere(handedOver, handOver);
  await importCluster(
    { ...fixture.runtime, signal: neverAborted },
    await fixture.open(region),
    handOver,
  );
  const files = ["events.jsonl", "id_ed25519", "ip-detect", "known_hosts", "last_record.json"];
  expect((await readdir(imported.directory)).toSorted()).toEqual(files);
});

// Shows R116.
test("a node that presents another host key ends the import, and nothing is kept", async () => {
  await using handedOver = await openHandOver();
  const { handOver } = handedOver;
  const [name] = handOver.hostKeys.keys();
  const forged = wireKey(generateKeyPair("forged").publicKey);
  const hostKeys = new Map([...handOver.hostKeys, [name!, forged]]);
  expect((await failureOf(importThere(handedOver, { ...handOver, hostKeys }))).id).toBe(
    "host-key-changed",
  );
  await expectUntouched(handedOver);
});

test("a key that the nodes refuse ends the import, and nothing is kept", async () => {
  await using handedOver = await openHandOver();
  const { privateKey } = generateKeyPair("another");
  const failure = await failureOf(importThere(handedOver, { ...handedOver.handOver, privateKey }));
  expect(failure).toMatchObject({
    id: "connection-failed",
    message: expect.stringContaining("refused the login"),
  });
  await expectUntouched(handedOver);
});

test("host keys of other hosts in the file are not kept", async () => {
  await using handedOver = await openHandOver();
  const { handOver } = handedOver;
  const foreign = wireKey(generateKeyPair("foreign").publicKey);
  const hostKeys = new Map([...handOver.hostKeys, ["git.example.com", foreign], ["*", foreign]]);
  const imported = await importThere(handedOver, { ...handOver, hostKeys });
  const kept = parseKnownHosts(
    await readFile(creationFiles(imported.directory).knownHosts, "utf8"),
  );
  expect(new Set(kept.map(([name]) => name))).toEqual(new Set(handOver.hostKeys.keys()));
});

test("a node without a host key in the file is reported, and the others can be used", async () => {
  await using handedOver = await openHandOver();
  const { fixture, handOver } = handedOver;
  await importThere(handedOver, {
    ...handOver,
    hostKeys: new Map([...handOver.hostKeys].slice(0, -1)),
  });
  expect(
    fixture.told.filter((line) =>
      line.startsWith("warn: The file has no host key for public_agent_0"),
    ),
  ).toHaveLength(1);
});

test("an export of an earlier cluster, or of one that the account doesn't have, is refused", async () => {
  await using handedOver = await openHandOver();
  const { handOver } = handedOver;
  const earlier = await failureOf(
    importThere(handedOver, { ...handOver, creationId: "0123456789abcdef" }),
  );
  expect(earlier).toMatchObject({
    id: "cluster-not-found",
    message: 'The file is for an earlier cluster "nightly" in us-west-2.',
  });
  const missing = await failureOf(importThere(handedOver, { ...handOver, clusterId: "weekly" }));
  expect(missing).toMatchObject({
    id: "cluster-not-found",
    hint: expect.stringContaining("another account"),
  });
  await expectUntouched(handedOver);
});

test("keys that are already here are never replaced by others", async () => {
  await using handedOver = await openHandOver();
  const { handOver } = handedOver;
  const imported = await importThere(handedOver, handOver);
  const files = creationFiles(imported.directory);
  const other = generateKeyPair("mine");
  const [name] = handOver.hostKeys.keys();
  const foreign = [
    [files.privateKey, other.privateKey],
    [files.knownHosts, `${name} ${other.publicKey}\n`],
  ] as const;
  for (const [path, text] of foreign) {
    const before = await readFile(path, "utf8");
    await writeFile(path, text);
    const failure = await failureOf(importThere(handedOver, handOver));
    expect(failure).toMatchObject({
      id: "bad-usage",
      message: expect.stringContaining(`other keys for cluster "nightly", in ${path}`),
    });
    expect(await readFile(path, "utf8")).toBe(text);
    await writeFile(path, before);
  }
});

test("a cluster cannot be exported without its key or with a host key missing", async () => {
  await using handedOver = await openHandOver();
  const { cluster, fixture, other } = handedOver;
  const elsewhere = await failureOf(exportCluster(other.backend, "nightly", neverAborted));
  expect(elsewhere).toMatchObject({
    id: "key-missing",
    message: expect.stringContaining("The SSH key of cluster"),
  });
  await writeFile(creationFiles(cluster.directory).knownHosts, "");
  const failure = await failureOf(
    exportCluster(await fixture.open(region), "nightly", neverAborted),
  );
  expect(failure).toMatchObject({
    id: "key-missing",
    message: expect.stringContaining("The host key of master_0"),
  });
});

const program = join(import.meta.dir, "..", "..", "..", "src", "bin", "cluster-cloud.ts");

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(runtime: Runtime, words: readonly string[], stdin = ""): Promise<Ran> {
  const { environment } = runtime;
  const child = Bun.spawn([process.execPath, program, ...words], {
    env: { PATH: process.env["PATH"], ...environment },
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status: await child.exited, stdout, stderr };
}

test("the program exports to stdout or to a private file, and imports from both", async () => {
  await using handedOver = await openHandOver();
  const { fixture, other } = handedOver;
  const piped = await run(fixture.runtime, ["export", "-c", "nightly"]);
  expect(piped).toMatchObject({ status: 0, stderr: "" });
  const file = join(fixture.runtime.environment["HOME"]!, "nightly.json");
  await writeFile(file, "old\n", { mode: 0o644 });
  expect(
    await run(fixture.runtime, ["export", "-c", "nightly", "--output-file", file]),
  ).toMatchObject({
    status: 0,
    stdout: "",
  });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).toBe(piped.stdout);
  // No region is named: it is in the file.
  expect(await run(other.runtime, ["import", file])).toMatchObject({
    status: 0,
    stdout: "nightly\n",
  });
  const third = {
    ...other.runtime,
    environment: { ...other.runtime.environment, XDG_STATE_HOME: `${other.state}-3` },
  };
  expect(await run(third, ["import", "-", "--output", "json"], piped.stdout)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('"cluster": "nightly"'),
  });
  const inspected = await run(third, ["inspect", "-c", "nightly"]);
  expect(inspected.stdout).toContain(`${other.state}-3/cluster-e2e/cloud/us-west-2/nightly-`);
});

const sshLack = Bun.which("ssh") === null ? "there is no ssh" : undefined;

// Shows R116.
test.skipIf(sshLack !== undefined)(
  `after the import, run reaches the node that was pinned and no other (${sshLack ?? "here"})`,
  async () => {
    await using handedOver = await openHandOver();
    const { fixture, handOver, other } = handedOver;
    const imported = await importThere(handedOver, handOver);
    fixture.cloud.answers.replace([{ pattern: "", readsStdin: true, stdout: "{{hostname}}\n" }]);
    const words = ["run", "-c", "nightly", "--no-test-env", "hostname"];
    const hostname = `ip-${imported.nodes[0]!.privateAddress?.replaceAll(".", "-")}`;
    expect(await run(other.runtime, words)).toEqual({
      status: 0,
      stdout: `${hostname}\n`,
      stderr: "",
    });
    const forged = `${[...handOver.hostKeys.keys()][0]} ${generateKeyPair("forged").publicKey}\n`;
    await writeFile(creationFiles(imported.directory).knownHosts, forged);
    const refused = await run(other.runtime, words);
    expect(refused).toMatchObject({ status: 255, stdout: "" });
    expect(refused.stderr).toContain("[host-key-changed]");
  },
);

const ageLack =
  Bun.which("age") === null || Bun.which("age-keygen") === null
    ? "age is not installed"
    : undefined;

test.skipIf(ageLack !== undefined)(
  `an export is encrypted for its recipients (${ageLack ?? "here"})`,
  async () => {
    await using handedOver = await openHandOver();
    const { fixture, other } = handedOver;
    const identity = join(fixture.runtime.environment["HOME"]!, "identity");
    expect(Bun.spawnSync(["age-keygen", "-o", identity]).success).toBe(true);
    const recipient = Bun.spawnSync(["age-keygen", "-y", identity]).stdout.toString().trim();
    const exported = await run(fixture.runtime, [
      "export",
      "-c",
      "nightly",
      "--recipient",
      recipient,
    ]);
    expect(exported).toMatchObject({ status: 0, stderr: "" });
    expect(exported.stdout).toStartWith("-----BEGIN AGE ENCRYPTED FILE-----");
    const encrypted = await run(other.runtime, ["import", "-"], exported.stdout);
    expect(encrypted).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("stdin is encrypted with age"),
    });
    const decrypted = Bun.spawnSync(["age", "--decrypt", "--identity", identity], {
      stdin: Buffer.from(exported.stdout),
    });
    expect(await run(other.runtime, ["import", "-"], decrypted.stdout.toString())).toMatchObject({
      status: 0,
    });
    const refused = await run(fixture.runtime, [
      "export",
      "-c",
      "nightly",
      "--recipient",
      "nobody",
    ]);
    expect(refused).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining('cannot encrypt for "nobody"'),
    });
  },
);

test("the program refuses a terminal, a folder, a file that is no export, and a missing age", async () => {
  await using handedOver = await openHandOver();
  const { fixture } = handedOver;
  const home = fixture.runtime.environment["HOME"]!;
  await mkdir(join(home, "folder"));
  const refusals = [
    {
      words: ["export", "-c", "nightly", "--output-file", "/dev/null"],
      says: "it is not a regular file",
      status: 2,
    },
    {
      words: ["export", "-c", "nightly", "--output-file", join(home, "none", "x")],
      says: "no such file",
      status: 2,
    },
    { words: ["import", join(home, "folder")], says: "Cannot read", status: 2 },
    { words: ["import", "-"], says: "stdin was not written by cluster-cloud export", status: 2 },
    {
      words: ["export", "-c", "nightly", "--recipient", "age1x"],
      says: "There is no age on this computer",
      status: 5,
    },
  ];
  const elsewhere = {
    ...fixture.runtime,
    environment: { ...fixture.runtime.environment, PATH: "/nowhere" },
  };
  for (const { words, says, status } of refusals) {
    const ran = await run(elsewhere, words);
    expect(ran).toMatchObject({ status, stdout: "" });
    // Where the text is wrapped depends on the length of the temporary folder's name.
    expect(ran.stderr.replaceAll(/\s+/g, " ")).toContain(says);
  }
  const shown: string[] = [];
  const child = Bun.spawn([process.execPath, program, "export", "-c", "nightly"], {
    env: { PATH: process.env["PATH"], ...fixture.runtime.environment },
    terminal: {
      cols: 200,
      rows: 24,
      data: (_, bytes) => shown.push(Buffer.from(bytes).toString()),
    },
  });
  expect(await child.exited).toBe(2);
  expect(shown.join("")).toContain("stdout is a terminal");
  expect(shown.join("")).not.toContain("PRIVATE KEY");
});
