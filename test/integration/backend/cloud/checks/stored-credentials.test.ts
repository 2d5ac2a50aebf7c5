/** doctor's checks of credentials, account, region and clock, with the real SDK on a local cloud. */

import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { accounts } from "../../../../local-cloud/endpoint/accounts.ts";
import { freePort } from "../../../../support/free-port.ts";
import { shareDoctorFixture } from "./checks-fixture.ts";

const fixture = shareDoctorFixture();
const none = { CLOUD_ACCESS_KEY_ID: undefined, CLOUD_SECRET_ACCESS_KEY: undefined };
/** A time limit for requests that the SDK retries. */
const patience = 20_000;

/** A profile "sso" whose `credential_process` is a program that counts its runs. */
async function credentialProcess(expiresInMs: number) {
  const folder = await mkdtemp(join(fixture().folder, "profile-"));
  const path = (name: string): string => join(folder, name);
  const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey } = accounts.main;
  const Expiration = new Date(Date.now() + expiresInMs).toISOString();
  await writeFile(
    path("output"),
    JSON.stringify({ Version: 1, AccessKeyId, SecretAccessKey, Expiration }),
  );
  await writeFile(path("asked"), "");
  const command = `sh -c "echo x >>${path("asked")}; cat ${path("output")}"`;
  await writeFile(path("config"), `[profile sso]\ncredential_process = ${command}\n`);
  return {
    expiration: Expiration,
    // A new file each time, because the SDK reads a path only once.
    environment: { ...none, AWS_CONFIG_FILE: path("config"), CLOUD_PROFILE: "sso" },
    timesAsked: async () => (await readFile(path("asked"), "utf8")).split("\n").length - 1,
  };
}

test("source, account, region and clock with valid credentials", async () => {
  const diagnosis = await fixture().diagnose({});
  expect(["credentials", "account", "region", "clock"].map((name) => diagnosis.told(name))).toEqual(
    [
      "pass: Valid, from the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY\nIt is not known whether they expire.",
      `pass: ${accounts.main.accountId}`,
      "pass: us-west-2 can be used",
      "pass: Agrees with the cloud's",
    ],
  );
});

test("without credentials, the sources that were tried are listed, and checks that need credentials are skipped", async () => {
  const diagnosis = await fixture().diagnose({ environment: none });
  const text = diagnosis.told("credentials");
  expect(text).toMatch(
    /^fail: No cloud credentials.*CLOUD_PROFILE; AWS_PROFILE; AWS_ACCESS_KEY_ID.* → Set CLOUD_ACC/,
  );
  expect(diagnosis.names("fail")).toEqual(["credentials"]);
  expect(diagnosis.names("pass")).toEqual(["admin address"]);
  expect(diagnosis.told("ec2:RunInstances")).toBe("skip: Not checked: there are no credentials.");
  expect(fixture().cloud.requests.entries).toEqual([]);
});

test.each<[string, Readonly<Record<string, string | undefined>>, RegExp]>([
  [
    "half of a pair",
    { CLOUD_SECRET_ACCESS_KEY: undefined },
    /^fail: CLOUD_ACCESS_KEY_ID is set without CLOUD_SECRET_ACCESS_KEY\. → .* or unset CLOUD_ACCESS_KEY_ID/,
  ],
  [
    "a wrong secret",
    { CLOUD_SECRET_ACCESS_KEY: "wrong" },
    /^fail: .*CLOUD_SECRET_ACCESS_KEY: The request signature.* → Check that the key and the secret/,
  ],
  [
    "a session that has run out",
    {
      CLOUD_ACCESS_KEY_ID: accounts.expired.accessKeyId,
      CLOUD_SECRET_ACCESS_KEY: accounts.expired.secretAccessKey,
      CLOUD_SESSION_TOKEN: accounts.expired.sessionToken,
    },
    /^fail: The session .*CLOUD_SESSION_TOKEN has expired.* → Renew the session/,
  ],
  [
    "a profile that does not exist",
    { ...none, CLOUD_PROFILE: "nobody" },
    /^fail: .*profile "nobody" \(CLOUD_PROFILE\).* → .*There are these profiles: none\./,
  ],
  [
    "a bundle of authorities that cannot be read",
    { AWS_CA_BUNDLE: "/nowhere" },
    /^fail: .*Cannot use \/nowhere, the file that AWS_CA_BUNDLE names: .* → .*PEM/,
  ],
])("%s: only the check of credentials fails", async (_what, environment, text) => {
  const diagnosis = await fixture().diagnose({ environment });
  expect(diagnosis.told("credentials")).toMatch(text);
  expect(diagnosis.names("fail")).toEqual(["credentials"]);
  expect(diagnosis.told("account")).toStartWith("skip: Not checked: ");
});

test("a credential process runs once, and its expiry is shown", async () => {
  const { environment, expiration, timesAsked } = await credentialProcess(59.5 * 60_000);
  const text = (await fixture().diagnose({ environment })).told("credentials");
  const time = expiration.slice("2026-11-23T".length, "2026-11-23T12:34".length);
  expect(text).toStartWith('pass: Valid, from profile "sso" (CLOUD_PROFILE)\nThey expire at ');
  expect(text).toContain(`${time} UTC (in 59 min).`);
  expect(await timesAsked()).toBe(1);
});

test("credentials that expire soon cause a warning", async () => {
  const { environment } = await credentialProcess(9.5 * 60_000);
  const diagnosis = await fixture().diagnose({ environment });
  expect(diagnosis.told("credentials")).toMatch(
    /^warn: .* expire soon: at .* \(in 9 min\)\. → Renew the session/,
  );
  expect(diagnosis.names("fail")).toEqual([]);
});

test("a credential process that returns expired credentials", async () => {
  const { environment } = await credentialProcess(-300_000);
  const diagnosis = await fixture().diagnose({ environment });
  expect(diagnosis.told("credentials")).toMatch(/^fail: .*expired/);
});

test.each([
  [3_600_000, "behind"],
  [-3_600_000, "ahead of"],
])(
  "with a clock that is an hour off (%d ms), only the check of the clock fails",
  async (skewMs, direction) => {
    fixture().cloud.clock.skew(skewMs);
    const diagnosis = await fixture().diagnose({});
    const text = new RegExp(
      `^fail: This computer's clock is (3599|360[01]) s ${direction} the cloud's.*\\s+sudo timedatectl`,
    );
    expect(diagnosis.told("clock")).toMatch(text);
    expect(diagnosis.names("fail")).toEqual(["clock"]);
  },
  // With such a clock, the SDK retries every error, even of a dry run, with a corrected clock.
  patience,
);

test("a clock that is a minute off is shown, and every check passes", async () => {
  fixture().cloud.clock.skew(60_000);
  expect((await fixture().diagnose({})).told("clock")).toMatch(/^pass: .*(59|60|61) s behind/);
});

test.each(["af-south-1", "me-south-1", "xx-nowhere-1"])(
  "region %s: the enabled regions are listed, and the credentials pass",
  async (region) => {
    const diagnosis = await fixture().diagnose({ defaults: { region } });
    expect(diagnosis.told("region")).toMatch(
      new RegExp(`^fail: Region ${region} .* → Enabled: .*us-west-2`),
    );
    expect(diagnosis.told("credentials")).toStartWith("pass: ");
    expect(diagnosis.names("fail")).toEqual(["region"]);
  },
);

test(
  "an unreachable API makes the region fail, and the credentials are skipped",
  async () => {
    const environment = { AWS_ENDPOINT_URL_EC2: `http://127.0.0.1:${await freePort()}` };
    const diagnosis = await fixture().diagnose({ environment });
    expect(diagnosis.told("region")).toMatch(/^fail: .*did not answer.* → Check the network/);
    expect(diagnosis.told("credentials")).toMatch(/^skip: Found .*, but not tested/);
    expect(diagnosis.told("clock")).toStartWith("skip: ");
    expect(diagnosis.names("fail")).toEqual(["region"]);
  },
  patience,
);
