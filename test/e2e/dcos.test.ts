/**
 * The layout dcos on real machines, with a stand-in for its releases (test/dcos-platform): create, wait, run and sync
 * in both variants.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { longEnough } from "../support/long-enough.ts";
import type { Authority } from "./support/authority.ts";
import { handshake, makeAuthority } from "./support/authority.ts";
import { makeCheckout } from "./support/checkout.ts";
import { buildDcosArtifact, dcosMachineWords } from "./support/dcos.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const testsFolder = "/opt/mesosphere/active/dcos-integration-test";
const libraryFolder = (python: string): string =>
  `/opt/mesosphere/active/bootstrap/lib/${python}/site-packages/dcos_internal_utils`;
const names = { tests: "dcos-integration-test", library: "dcos_internal_utils" };

const state: { cloud?: TestCloud; machines: readonly string[] } = { machines: [] };
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  state.machines = await dcosMachineWords("us-west-2");
  await Bun.write(join(state.cloud.folder, "license.txt"), "a-license-key\n");
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

/** The words of a `create`; the keys are lines of its extra configuration. */
async function createWords(
  id: string,
  variant: string,
  more: readonly string[],
  keys = "",
): Promise<readonly string[]> {
  const extra = join(cloud().folder, `${id}.yaml`);
  // A cloud's machines keep the time; these have the clock of this machine, which perhaps nobody synchronizes.
  await Bun.write(extra, `check_time: false\n${keys}`);
  return [
    ...`create -c ${id} --variant ${variant} --extra-config`.split(" "),
    extra,
    ...state.machines,
    ...more,
  ];
}

const few = ["--agents", "0", "--public-agents", "0"];

const filesOn = async (id: string, folder: string): Promise<readonly string[]> =>
  (await cloud().run(["run", "-c", id, `cd ${folder} && find . -type f | LC_ALL=C sort`])).stdout
    .trim()
    .split("\n");

/** What a test runner in the tests folder sees of the variables that are set for it. */
const showVariables = `pwd; env | grep -E '^(CLUSTER|DCOS)_|_HOSTS=|^PYTHONPATH=' | LC_ALL=C sort`;

// Shows R113.
test("an open source release is created; Docker is started on machines where it doesn't run", async () => {
  const artifact = await buildDcosArtifact("oss", "1.9.10", cloud().folder);
  const created = await cloud().run(await createWords("default", "oss", [artifact]));
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
  const [group] = (await cloud().control("groups")) as readonly { readonly rules: unknown }[];
  expect(JSON.stringify(group)).toContain("61001");
});

test("wait asks the units, 3dt and the masters; an open source cluster has no login to count agents with", async () => {
  expect(await cloud().run(["wait", "--timeout", "5m"])).toMatchObject({ status: 0, stdout: "" });
  const units = await cloud().run([
    "run",
    "systemctl is-active dcos-stand-in docker; ls /opt/mesosphere/bin",
  ]);
  expect(units.stdout).toBe("active\nactive\n3dt\ndcos-shell\n");
  const roles = ["master_0", "agent_0", "public_agent_0"].map(async (node) =>
    cloud().run(["run", "--no-test-env", "--node", node, "ls", "/etc/mesosphere/roles"]),
  );
  expect((await Promise.all(roles)).map(({ stdout }) => stdout)).toEqual([
    "master\n",
    "slave\n",
    "slave_public\n",
  ]);
});

// Shows R113.
test("run sets both families of variables, in the tests folder, after the environment file", async () => {
  const [master, agent, publicAgent] = (await cloud().inspect("default")).nodes.map(
    (node) => node.privateAddress,
  );
  const login = ["--login-uname", "bob", "--login-pw", "-"];
  const ran = await cloud().run(["run", ...login, showVariables], { stdin: "s3cret\n" });
  expect(ran.stdout.trim().split("\n")).toEqual([
    testsFolder,
    `CLUSTER_DNS_ADDRESS=http://${master}`,
    "CLUSTER_LOGIN_PW=s3cret",
    "CLUSTER_LOGIN_UNAME=bob",
    "CLUSTER_NUM_AGENTS=2",
    "CLUSTER_NUM_MASTERS=1",
    `DCOS_DNS_ADDRESS=http://${master}`,
    "DCOS_LOGIN_PW=s3cret",
    "DCOS_LOGIN_UNAME=bob",
    "DCOS_NUM_AGENTS=2",
    "DCOS_NUM_MASTERS=1",
    `MASTER_HOSTS=${master}`,
    `PUBLIC_MASTER_HOSTS=${master}`,
    `PUBLIC_SLAVE_HOSTS=${publicAgent}`,
    "PYTHONPATH=/opt/mesosphere/active/bootstrap/lib/python3.5/site-packages",
    `SLAVE_HOSTS=${agent}`,
  ]);
});

test("logs keep what the release's preflight found", async () => {
  const folder = (await cloud().run(["logs"])).stdout.trim();
  const file = new Bun.Glob("*master_0*install*").scanSync({ cwd: folder }).next().value as string;
  expect(await Bun.file(join(folder, file)).text()).toContain("Checking if port 53 is free: PASS");
});

test("an open source checkout is synced into this layout's folders", async () => {
  const checkout = await makeCheckout(
    join(cloud().folder, "oss"),
    "oss",
    {
      tests: { "conftest.py": "# conf\n", "test_new.py": "# new\n", "util/tool.py": "# tool\n" },
      library: { "cli.py": "# library\n" },
    },
    names,
  );
  const synced = await cloud().run(["sync", checkout]);
  expect(synced.stdout).toStartWith("master_0: 4 files, 4 sent (");
  expect(synced.status).toBe(0);
  expect(await filesOn("default", `${testsFolder}/`)).toEqual([
    "./conftest.py",
    "./test_new.py",
    "./util/tool.py",
  ]);
  expect(await filesOn("default", libraryFolder("python3.5"))).toEqual([
    "./__init__.py",
    "./cli.py",
  ]);
});

test("a checkout of the other layout is refused with the path looked for", async () => {
  const other = { tests: "integration-test", library: "cluster_internal_utils" };
  const folder = join(cloud().folder, "other");
  await makeCheckout(folder, "oss", { tests: { "a.py": "" }, library: {} }, other);
  const refused = await cloud().run(["sync", folder]);
  expect(refused.stderr).toContain(join(folder, "packages/dcos-integration-test/extra"));
  expect(refused).toMatchObject({ status: 2, stdout: "" });
});

test("an enterprise release with a custom CA: its TLS, the superuser's login, and agents counted with the token", async () => {
  const artifact = await buildDcosArtifact("enterprise", "2.1.2", cloud().folder);
  const authority = await makeAuthority(join(cloud().folder, "authority"), "Example");
  const { options, keys } = await customAuthority(authority);
  const license = ["--license-key", join(cloud().folder, "license.txt")];
  const words = await createWords(
    "paid",
    "enterprise",
    ["--public-agents", "0", ...license, ...options, artifact],
    keys,
  );
  expect(await cloud().run(words)).toMatchObject({ status: 0, stdout: "paid\n" });
  const refused = await cloud().run([
    "wait",
    "-c",
    "paid",
    "--timeout",
    "5m",
    "--superuser-password",
    "wrong",
  ]);
  expect(refused.stderr).toContain("[login-refused]");
  expect(refused.status).toBe(1);
  expect(await cloud().run(["wait", "-c", "paid", "--timeout", "5m"])).toMatchObject({
    status: 0,
    stdout: "",
  });
  const { webUi, nodes } = await cloud().inspect("paid");
  expect(webUi).toStartWith("https://");
  const master = { host: nodes[0]!.publicAddress, address: nodes[0]!.privateAddress };
  expect((await handshake(master, authority.rootPath)).output).toContain("Verification: OK");
  expect((await cloud().run(["run", "-c", "paid", "ls /opt/mesosphere/bin"])).stdout).toBe(
    "dcos-check-runner\ndcos-shell\n",
  );
});

/** The options and keys of the documented flow, for an authority whose certificate is the root itself. */
async function customAuthority(
  authority: Authority,
): Promise<{ readonly options: readonly string[]; readonly keys: string }> {
  const folder = join(cloud().folder, "genconf");
  await Bun.write(join(folder, "root.crt"), Bun.file(authority.rootPath));
  await Bun.write(join(folder, "root.key"), Bun.file(authority.rootKeyPath));
  const keys = "ca_certificate_path: genconf/root.crt\nca_certificate_key_path: genconf/root.key\n";
  const onMaster = `${authority.rootKeyPath}:/var/lib/dcos/pki/tls/CA/private/custom_ca.key`;
  return {
    options: ["--genconf-dir", folder, "--copy-to-master", onMaster],
    keys: `${keys}ca_certificate_chain_path: genconf/root.crt\n`,
  };
}

test("an open source checkout stands beside an enterprise cluster's own tests", async () => {
  expect(await cloud().run(["sync", "-c", "paid", join(cloud().folder, "oss")])).toMatchObject({
    status: 0,
  });
  expect(await filesOn("paid", `${testsFolder}/`)).toEqual([
    "./open_source_tests/test_new.py",
    "./test_stand_in.py",
    "./util/tool.py",
  ]);
  expect(await filesOn("paid", libraryFolder("python3.6"))).toEqual(["./__init__.py"]);
});

// Each of the following tests has a cluster of its own, and mostly waits for it.

test.concurrent("an enterprise key for an open source release is refused in genconf's words", async () => {
  const artifact = await buildDcosArtifact("oss", "1.13.9", cloud().folder);
  const keys = "fault_domain_enabled: true\nunknown_key: 1\n";
  const refused = await cloud().run(await createWords("refused", "oss", [...few, artifact], keys));
  expect(refused.stderr).toContain("fault_domain_enabled: must be calculated");
  expect(refused.stderr).toContain("[configuration-refused]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
});

test.concurrent("an artifact whose head tells nothing is asked on the node, which is then prepared for what it is", async () => {
  const artifact = await buildDcosArtifact("oss", "1.13.9", cloud().folder);
  const mute = join(cloud().folder, "mute.sh");
  await Bun.write(mute, (await Bun.file(artifact).bytes()).filter(outsideSecondLine()));
  const created = await cloud().run(
    await createWords("mute", "oss", ["--public-agents", "0", mute]),
  );
  expect(created).toMatchObject({ status: 0, stdout: "mute\n" });
  expect(await cloud().run(["wait", "-c", "mute", "--timeout", "5m"])).toMatchObject({ status: 0 });
});

/** For `filter`: leaves out the bytes of an artifact's second line. */
function outsideSecondLine(): (byte: number) => boolean {
  const seen = { lines: 0 };
  return (byte) => {
    const isSecond = seen.lines === 1;
    if (byte === 10) seen.lines += 1;
    return !isSecond;
  };
}

test.concurrent.each([
  [
    "install",
    "1.11.13",
    "install-failed",
    /the install script exited with status 1[^]*is away: FAIL/,
  ],
  ["download", "1.13.9", "install-failed", /the unit dcos-download failed[^]*404/],
  [
    "setup",
    "2.1.2",
    "install-failed",
    /the unit dcos-setup failed[^]*the fault that was asked for/,
  ],
] as const)(
  "a failure at %s of %s ends the wait at once, with its log",
  async (at, release, id, words) => {
    const artifact = await buildDcosArtifact("oss", release, cloud().folder);
    const keys = `stand_in_fault: {role: master, at: ${at}}\n`;
    expect(await cloud().run(await createWords(at, "oss", [...few, artifact], keys))).toMatchObject(
      { status: 0 },
    );
    const waited = await cloud().run(["wait", "-c", at, "--timeout", "5m"]);
    expect(waited.stderr).toContain(`[${id}]`);
    expect(waited.stderr).toMatch(words);
    expect(waited).toMatchObject({ status: 1, stdout: "" });
  },
);

test.concurrent("a node whose own check stays critical is waited for until the deadline, which tells what it said", async () => {
  const artifact = await buildDcosArtifact("oss", "1.11.13", cloud().folder);
  const keys = "stand_in_fault: {role: master, at: check}\n";
  expect(
    await cloud().run(await createWords("check", "oss", [...few, artifact], keys)),
  ).toMatchObject({ status: 0 });
  const said = "master_0: its check says: fault: the fault that was asked for";
  // Until the node is set up, its check says nothing.
  await longEnough(8_000, async (limitMs) => {
    const waited = await cloud().run(["wait", "-c", "check", "--timeout", `${limitMs / 1_000}s`]);
    expect(waited.stderr).toContain("[deadline-passed]");
    expect(waited).toMatchObject({ status: 4, stdout: "" });
    return waited.stderr.includes(said);
  });
});
