/** The enterprise variant on real machines: license, superuser, TLS, and no secret where it does not belong. */
import { beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const license = "license-0123456789-not-to-be-seen";
const { backend: cloud, artifact } = shareBackend(
  async () => startTestCloud("container"),
  "enterprise",
);

beforeAll(async () => {
  await Bun.write(join(cloud().folder, "license.txt"), `${license}\n`);
  await Bun.write(join(cloud().folder, "security.yaml"), "security: disabled\n");
  await Bun.write(join(cloud().folder, "licensed.yaml"), `license_key_contents: ${license}\n`);
});

const createWords = () =>
  `create --variant enterprise --linux-distribution debian-12 --public-agents 0 -vvv ${artifact()}`.split(
    " ",
  );

// Shows R54, R55.
test("without a license the artifact's own words are shown, and nothing is left", async () => {
  const refused = await cloud().run(createWords());
  expect(refused.stderr).toMatch(
    /Enterprise [\d.]+ needs a license key, but none was given\. Pass one with --license-key/,
  );
  expect(refused.stderr).toContain("license_key_contents");
  expect(refused.stderr).toContain("[configuration-refused]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  expect(await cloud().machines()).toEqual([]);
});

// Shows R56.
test("with a license from the environment it is created, and the license is printed nowhere", async () => {
  const environment = { CLUSTER_LICENSE_KEY_PATH: join(cloud().folder, "license.txt") };
  const words = [
    "--security-mode",
    "strict",
    "--extra-config",
    join(cloud().folder, "security.yaml"),
  ];
  const created = await cloud().run([...createWords(), ...words], { environment });
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
  expect(created.stderr).not.toContain(license);
});

test("a wrong superuser password is said, not waited for", async () => {
  const waited = await cloud().run(["wait", "--superuser-password", "-", "--timeout", "14m"], {
    stdin: "wrong-password\n",
  });
  expect(waited.stderr).toContain("[login-refused]");
  expect(waited.stderr).not.toContain("wrong-password");
  expect(waited).toMatchObject({ status: 1, stdout: "" });
});

// Shows R1.
test("wait checks TLS against the cluster's CA and logs in", async () => {
  expect(await cloud().run(["wait", "--timeout", "14m", "-vv"])).toMatchObject({
    status: 0,
    stdout: "",
  });
});

// Shows R73.
test("a job runs, and the web UI speaks https", async () => {
  expect((await cloud().run(["run", "srun", "-N1", "echo", "ran"])).stdout).toBe("ran\n");
  expect((await cloud().inspect("default")).webUi).toStartWith("https://");
  const folder = join(cloud().environment["XDG_STATE_HOME"]!, "cluster-e2e", "cloud", "us-west-2");
  for (const name of await readdir(folder, { recursive: true })) {
    const file = Bun.file(join(folder, name));
    if (await file.exists()) expect(await file.text()).not.toContain(license);
  }
});

// Shows R29, R50.
test("--security-mode won over --extra-config, and the license is the file's without its newline, for root alone", async () => {
  const installer = "/var/lib/cluster-e2e/installer";
  const line = `cat /opt/cluster/etc/bootstrap-config.json; stat -c '%a %U' ${installer}/genconf/config.yaml ${installer}`;
  const shown = await cloud().run(["run", line]);
  expect(shown.stdout).toContain('"security": "strict"');
  expect(shown.stdout).toEndWith("600 root\n700 root\n");
  expect((await cloud().run(["run", "cat /opt/cluster/etc/license"])).stdout).toBe(license);
});

test("without TLS the superuser logs in over HTTP; a license in --extra-config leaves the other sources unread", async () => {
  const extra = [
    "--extra-config",
    join(cloud().folder, "licensed.yaml"),
    "--security-mode",
    "disabled",
  ];
  const words = [
    "-c",
    "plain",
    "--agents",
    "0",
    "--license-key",
    join(cloud().folder, "no-such-file"),
    ...extra,
  ];
  const environment = { CLUSTER_LICENSE_KEY_PATH: "/no/such/file" };
  const created = await cloud().run([...createWords(), ...words], { environment });
  expect(created).toMatchObject({ status: 0, stdout: "plain\n" });
  expect(created.stderr).not.toContain(license);
  const refused = await cloud().run([
    "wait",
    "-c",
    "plain",
    "--superuser-password",
    "wrong",
    "--timeout",
    "5m",
  ]);
  expect(refused.stderr).toContain("[login-refused]");
  expect(await cloud().run(["wait", "-c", "plain", "--timeout", "14m"])).toMatchObject({
    status: 0,
    stdout: "",
  });
  expect((await cloud().inspect("plain")).webUi).toStartWith("http://");
});
