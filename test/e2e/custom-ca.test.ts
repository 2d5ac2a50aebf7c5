/**
 * An enterprise cluster with the user's own certificate authority and superuser, following the steps of the
 * documentation.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import type { Authority } from "./support/authority.ts";
import { handshake, makeAuthority, openssl } from "./support/authority.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud; artifact?: string; own?: Authority; other?: Authority } = {};
const cloud = (): TestCloud => state.cloud!;
const keyOnMaster = "/var/lib/cluster/pki/tls/CA/private/custom_ca.key";
const superuser = { name: "operator", password: "a Superuser's pass$word" };

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  const { folder } = state.cloud;
  [state.artifact, state.own, state.other] = await Promise.all([
    buildArtifact("enterprise", folder),
    makeAuthority(join(folder, "own"), "Example"),
    makeAuthority(join(folder, "other"), "Another"),
  ]);
  await Bun.write(join(folder, "license.txt"), "a-license-key\n");
  const hash = (await openssl(["passwd", "-6", "-stdin"], `${superuser.password}\n`)).trim();
  await Bun.write(
    join(folder, "extra.yaml"),
    `ca_certificate_path: genconf/custom_ca.crt
ca_certificate_key_path: genconf/custom_ca.key
ca_certificate_chain_path: genconf/custom_ca_chain.crt
superuser_username: ${superuser.name}
superuser_password_hash: ${hash}
`,
  );
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const createWords = (id: string, folder: string, key: string): readonly string[] => [
  ...`create -c ${id} --variant enterprise --linux-distribution debian-12 --public-agents 0`.split(
    " ",
  ),
  "--license-key",
  join(cloud().folder, "license.txt"),
  "--extra-config",
  join(cloud().folder, "extra.yaml"),
  "--genconf-dir",
  folder,
  "--copy-to-master",
  `${key}:${keyOnMaster}`,
  state.artifact!,
];

async function handshakeWithMaster(rootPath: string): ReturnType<typeof handshake> {
  const master = (await cloud().inspect("default")).nodes[0]!;
  return handshake({ host: master.publicAddress, address: master.privateAddress }, rootPath);
}

// These create clusters, and mostly wait for them.
test.concurrent("a CA key that doesn't fit is refused with the artifact's words, and nothing is left", async () => {
  const mixed = join(cloud().folder, "mixed");
  await Bun.$`cp -R ${state.own!.folder} ${mixed} && cp ${state.other!.keyPath} ${mixed}/custom_ca.key`.quiet();
  const refused = await cloud().run([
    ...createWords("mixed", mixed, state.other!.keyPath),
    "--agents",
    "0",
  ]);
  expect(refused.stderr).toContain(
    "ca_certificate_key_path: genconf/custom_ca.key is not the key of genconf/custom_ca.crt, or is encrypted\n",
  );
  expect(refused.stderr).toContain("[configuration-refused]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  const machines = await cloud().machines();
  expect(machines.filter(({ tags }) => tags["cluster-e2e:cluster-id"] === "mixed")).toEqual([]);
  const groups = (await cloud().control("groups")) as readonly { readonly groupName: string }[];
  expect(groups.filter(({ groupName }) => groupName === "cluster-e2e-mixed")).toEqual([]);
});

test.concurrent("a key of another CA on the masters alone fails their installation, and wait says so in the installer's words", async () => {
  const words = [
    ...createWords("misfit", state.own!.folder, state.other!.keyPath),
    "--agents",
    "0",
  ];
  expect(await cloud().run(words)).toMatchObject({ status: 0, stdout: "misfit\n" });
  const waited = await cloud().run(["wait", "-c", "misfit", "--timeout", "6m"]);
  expect(waited.stderr).toContain(`${keyOnMaster} is not the key of the configured CA certificate`);
  expect(waited.stderr).toContain("[install-failed]");
  expect(waited).toMatchObject({ status: 1, stdout: "" });
});

// Shows R37, R57.
test.concurrent("the documented steps start an installation with the custom CA", async () => {
  const created = await cloud().run(createWords("default", state.own!.folder, state.own!.keyPath));
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
});

// Shows R74, R85.
test("the default superuser is refused where --extra-config names another", async () => {
  const waited = await cloud().run(["wait", "--timeout", "6m"]);
  expect(waited.stderr).toContain('"admin"');
  expect(waited.stderr).toContain("[login-refused]");
  expect(waited).toMatchObject({ status: 1, stdout: "" });
});

// Shows R56, R85.
test("wait succeeds with that superuser's name and password", async () => {
  const words = [
    "--superuser-username",
    superuser.name,
    "--superuser-password",
    superuser.password,
  ];
  const waited = await cloud().run(["wait", "--timeout", "6m", "-vvv", ...words]);
  expect(waited).toMatchObject({ status: 0, stdout: "" });
  expect(waited.stderr).not.toContain(superuser.password);
});

// Shows R57.
test("the served certificate chains to the custom CA", async () => {
  const { status, output } = await handshakeWithMaster(state.own!.rootPath);
  expect(output).toContain("Verification: OK");
  expect(output).toMatch(/issuer=O = Example, CN = Example Issuing/);
  expect(status).toBe(0);
});

test("and to no other", async () => {
  const { status, output } = await handshakeWithMaster(state.other!.rootPath);
  expect(output).toMatch(/verify error:num=\d+/);
  expect(status).not.toBe(0);
});

test("the key stands on the master for root alone, and the cluster hands out the root certificate", async () => {
  expect((await cloud().run(["run", "stat", "-c", "%a %U", keyOnMaster])).stdout).toBe(
    "600 root\n",
  );
  const sums = await cloud().run(["run", `sha256sum <${keyOnMaster}`]);
  expect(sums.stdout.split(" ")[0]).toBe(
    new Bun.CryptoHasher("sha256").update(await Bun.file(state.own!.keyPath).bytes()).digest("hex"),
  );
  const handed = await cloud().run(["run", "curl -fsSk https://127.0.0.1/ca/cluster-ca.crt"]);
  expect(handed.stdout.trim()).toBe((await Bun.file(state.own!.rootPath).text()).trim());
});
