/** What variables and the profile say about requests. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readProfile } from "../../../../../src/backend/cloud/credentials/profile.ts";
import { readSettings } from "../../../../../src/backend/cloud/credentials/settings.ts";
import { messageOf } from "../../../../../src/errors.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { findSource } from "../../../../support/find-source.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { makeAuthority } from "../../../platform/readiness/readiness-web.ts";

async function settingsOf(variables: Readonly<Record<string, string>>, config = "") {
  await using folder = await scratchFolder();
  const file = join(folder.path, "config");
  await writeFile(file, config);
  const environment = { HOME: folder.path, AWS_CONFIG_FILE: file, ...variables };
  const settings = await readSettings(environment, await readProfile(environment));
  return { ...settings, endpoint: settings.endpointOf("EC2") };
}

const dev = { CLOUD_PROFILE: "dev" };

test.each<[Readonly<Record<string, string>>, string, string | undefined]>([
  [
    dev,
    "[profile dev]\nendpoint_url = http://a.test\n",
    'http://a.test/, from endpoint_url of profile "dev" (CLOUD_PROFILE)',
  ],
  [
    { ...dev, AWS_ENDPOINT_URL: "http://b.test/" },
    "[profile dev]\nendpoint_url = http://a.test\n",
    "http://b.test/, from AWS_ENDPOINT_URL",
  ],
  [
    { AWS_ENDPOINT_URL_EC2: "", AWS_ENDPOINT_URL: "" },
    "[default]\nendpoint_url = http://a.test\n",
    'http://a.test/, from endpoint_url of profile "default" of the shared credentials file',
  ],
  [{ ...dev, AWS_PROFILE: "other" }, "[profile other]\nendpoint_url = http://a.test\n", undefined],
  [
    { CLOUD_PROFILE: "", AWS_PROFILE: "other" },
    "[profile other]\nendpoint_url = http://a.test\n",
    'http://a.test/, from endpoint_url of profile "other" (AWS_PROFILE)',
  ],
  [
    dev,
    "[profile dev]\nservices = s\n[services s]\nec2 =\n  endpoint_url = http://me:pass@c.test/\n",
    'http://***@c.test/, from ec2 endpoint_url of profile "dev" (CLOUD_PROFILE)',
  ],
  [
    dev,
    "[profile dev]\nservices = s\nendpoint_url = http://a.test\n[services s]\ns3 =\n  endpoint_url = http://c.test\n",
    'http://a.test/, from endpoint_url of profile "dev" (CLOUD_PROFILE)',
  ],
  [
    { AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: "TRUE", AWS_ENDPOINT_URL: "http://b.test" },
    "",
    undefined,
  ],
])("the endpoint of %j and %j", async (variables, config, shown) => {
  const { endpoint } = await settingsOf(variables, config);
  expect(endpoint && unmarked(endpoint.shown)).toBe(shown);
});

test("no client of the SDK reads another profile", async () => {
  const config =
    "[profile dev]\nuse_fips_endpoint = true\n[profile other]\nuse_dualstack_endpoint = true\n";
  expect(
    (await settingsOf({ ...dev, AWS_PROFILE: "other", AWS_USE_DUALSTACK_ENDPOINT: "" }, config))
      .client,
  ).toEqual({
    profile: "dev",
    useFipsEndpoint: true,
    useDualstackEndpoint: false,
    ignoreConfiguredEndpointUrls: true,
  });
});

test.each<[Readonly<Record<string, string>>, string, RegExp]>([
  [
    { AWS_USE_FIPS_ENDPOINT: "true", AWS_ENDPOINT_URL: "http://a.test" },
    "",
    /AWS_ENDPOINT_URL names one.*AWS_USE_FIPS_ENDPOINT/,
  ],
  [
    { AWS_ENDPOINT_URL: "http://a.test" },
    "[default]\nuse_dualstack_endpoint = true\n",
    /use_dualstack_endpoint of profile "default"/,
  ],
  [{ AWS_USE_FIPS_ENDPOINT: "yes" }, "", /AWS_USE_FIPS_ENDPOINT is neither true nor false: "yes"/],
  [
    dev,
    "[profile dev]\nendpoint_url = junk\n",
    /endpoint_url of profile "dev" \(CLOUD_PROFILE\) is not the URL of an API/,
  ],
  [dev, "[profile dev]\nservices = gone\n", /needs a section \[services gone\]/],
  [{ AWS_CA_BUNDLE: "/dev/null/none" }, "", /AWS_CA_BUNDLE names: the file does not exist/],
  [
    dev,
    "[profile dev]\nca_bundle = /nowhere\n",
    /ca_bundle of profile "dev" \(CLOUD_PROFILE\) names: the file does not exist/,
  ],
])("a setting that cannot be used is named: %j %j", async (variables, config, message) => {
  const failure = await failureOf(settingsOf(variables, config));
  expect(failure.id).toBe("machine-not-set-up");
  expect(failure.message).toMatch(message);
});

test("a bundle needs a certificate that can be read", async () => {
  await using folder = await scratchFolder();
  const { certificate } = await makeAuthority(folder.path);
  const path = join(folder.path, "bundle.pem");
  const damaged = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
  for (const text of [
    "",
    "no certificate\n",
    damaged,
    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
  ]) {
    await writeFile(path, text);
    expect((await failureOf(settingsOf({ AWS_CA_BUNDLE: path }))).message).toContain(
      "contains no certificate",
    );
  }
  await writeFile(path, `# ours\n${certificate}`);
  expect((await settingsOf({ AWS_CA_BUNDLE: path })).authorities).toBe(`# ours\n${certificate}`);
  expect((await settingsOf({ AWS_CA_BUNDLE: "" })).authorities).toBeUndefined();
});

test.each([
  [
    "mfa_serial = arn:aws:iam::1:mfa/me\nrole_arn = r\nsource_profile = base\n",
    /cannot ask for the code of mfa_serial.*export-credentials --profile dev/,
  ],
  ["sso_session = corp\n", /aws sso login --profile dev/],
  ["role_arn = r\nsource_profile = base\n", /Put valid keys into profile "base"/],
  ["role_arn = r\nsource_profile = sso\n", /aws sso login --profile sso/],
  ["login_session = arn:me\n", /aws login --profile dev/],
  ["credential_process = /bin/keys\n", /Run the credential_process of profile "dev" by hand/],
  ["region = us-west-2\n", /Put valid keys into profile "dev"/],
])("the hint of a profile is about its own kind: %j", async (settings, hint) => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "config");
  const others =
    "[profile base]\naws_access_key_id = A\naws_secret_access_key = s\n[profile sso]\nsso_session = corp\n";
  await writeFile(file, `[profile dev]\n${settings}${others}`);
  expect((await findSource({ ...dev, AWS_CONFIG_FILE: file })).hint).toMatch(hint);
});

test.each([
  ["[dev]\n", /section \[dev\] in .* is not read as profile "dev"/, /Write it as \[profile dev\]/],
  ["[profile\tdev]\n", /is not read as profile "dev"/, /Write it as \[profile dev\]/],
  ["[profile dev]\nAWS_ACCESS_KEY_ID = A\n", /has the setting AWS_ACCESS_KEY_ID/, /small letters/],
  ["[profile dev]\naws_access_key_id = A\n", /key_id without aws_secret_access_key/, /Add what/],
  [
    "[profile dev]\naws_access_key_id = A\naws_secret_access_key = s\nrole_arn = r\n",
    /has role_arn without source_profile or credential_source/,
    /Add what is missing/,
  ],
  ["[profile dev]\n# later\n", /profile "dev" has no settings/, /Put credentials into it/],
  ["[profile other]\nregion = x\n", /there is no profile "dev"; .*: the file/, /profiles: other\./],
  [
    "[profile dev]\nsso_session = s\nsso_account_id = 1\n[sso-session s]\nsso_region = r\n",
    /signs on with SSO, but lacks sso_start_url and sso_role_name/,
    /aws configure sso --profile dev/,
  ],
  [
    "[profile dev]\nsso_start_url = u\nsso_account_id = 1\nsso_role_name = r\n",
    /lacks sso_region/,
    /Add what is missing/,
  ],
  ["[profile dev]\nweb_identity_token_file = /t\n", /token_file without role_arn/, /Add what/],
  [
    "[profile dev]\nrole_arn = r\nsource_profile = a\ncredential_source = Environment\n",
    /has both source_profile and credential_source/,
    /Remove one/,
  ],
  [
    "[profile dev]\nrole_arn = r\nsource_profile = a\n[a]\naws_access_key_id = A\n",
    /section \[a\] in .* is not read as profile "a"/,
    /Write it as \[profile a\]/,
  ],
  [
    "[profile dev]\nrole_arn = r\nsource_profile = a\n[profile a]\nrole_arn = r\nsource_profile = dev\n",
    /cycle/,
    /Change source_profile of profile "a"/,
  ],
  [
    "[profile dev]\nrole_arn = r\ncredential_source = Nonsense\n",
    /Got Nonsense/,
    /must be Environment, EcsContainer or Ec2InstanceMetadata/,
  ],
])("what is wrong with a profile is named: %j", async (config, problem, hint) => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "config");
  await writeFile(file, config);
  const source = await findSource({ ...dev, AWS_CONFIG_FILE: file });
  expect(source.hint).toMatch(hint);
  const failure = await source.provide().catch((error: unknown) => error);
  expect(unmarked(messageOf(failure))).toMatch(problem);
});

test("a section of the credentials file that begins with profile, as in the config file, is named", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "credentials");
  await writeFile(file, "[profile dev]\naws_access_key_id = A\naws_secret_access_key = s\n");
  const source = await findSource({ ...dev, AWS_SHARED_CREDENTIALS_FILE: file });
  expect(source.hint).toEndWith(" Write it as [dev] there.");
  expect((await failureOf(source.provide())).message).toBe(
    `the section [profile dev] in ${file} is not read as profile "dev"`,
  );
});

test("shared files that cannot be read are named with the reason", async () => {
  await using folder = await scratchFolder();
  const source = await findSource({ ...dev, AWS_CONFIG_FILE: folder.path });
  const failure = await source.provide().catch((error: unknown) => error);
  expect(unmarked(messageOf(failure))).toBe(
    `there is no profile "dev"; ${folder.path}: it is a folder, not a file; /nonexistent/.aws/credentials: the file does not exist`,
  );
});

test("a profile's name that the SDK does not read is named", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "config");
  await writeFile(file, "[profile 'dev one']\naws_access_key_id = A\n");
  const source = await findSource({ CLOUD_PROFILE: "dev one", AWS_CONFIG_FILE: file });
  expect(source.hint).toContain("Give it a name of letters, digits and the characters");
});

test("files whose variables are empty are the usual ones; ~ is the home folder", async () => {
  const { files } = await readProfile({
    HOME: "/home/me",
    AWS_CONFIG_FILE: "",
    AWS_SHARED_CREDENTIALS_FILE: "~/keys",
  });
  expect(files).toEqual({ configFilepath: "/home/me/.aws/config", filepath: "/home/me/keys" });
});
