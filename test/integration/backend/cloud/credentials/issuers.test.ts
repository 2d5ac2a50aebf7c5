/** Where requests for credentials go, and those that are signed with them: a proxy sees each host. */
import { expect, test } from "bun:test";
import { createHash, generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freePort } from "../../../../support/free-port.ts";
import { recordingProxy } from "../../../../support/recording-proxy.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const program = join(
  import.meta.dir,
  "..",
  "..",
  "..",
  "..",
  "..",
  "src",
  "bin",
  "cluster-cloud.ts",
);

interface Machine {
  /** Files of the folder `.aws`. */
  readonly files: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
}

/** Runs `list` in its own process, since proxies and the SDK's files are those of the process. */
async function listOn({ files, variables }: Machine, refusal?: string) {
  await using folder = await scratchFolder();
  await using proxy = await recordingProxy({}, refusal);
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder.path, ".aws", name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  const given = Object.entries(variables).map(([name, value]) => [
    name,
    value.replace("~", folder.path),
  ]);
  const child = Bun.spawn([process.execPath, program, "list", "--cloud-region", "us-west-2"], {
    env: {
      PATH: process.env["PATH"],
      HOME: folder.path,
      HTTPS_PROXY: proxy.url,
      AWS_EC2_METADATA_DISABLED: "true",
      ...Object.fromEntries(given),
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stderr] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  // After a failure, the program asks another region which ones are enabled.
  const hosts = new Set(proxy.asked.filter((host) => !/^ec2.*us-east-1/.test(host)));
  return { hosts: [...hosts], stderr: stderr.replaceAll(/\s+/g, " ") };
}

const sha1 = (text: string): string => createHash("sha1").update(text).digest("hex");
const startUrl = "https://corp.example.com/start";
const keys = "aws_access_key_id = AKIAONEOFTHEPROFILE1\naws_secret_access_key = a-secret\n";
const session = `[sso-session corp]\nsso_region = eu-central-1\nsso_start_url = ${startUrl}\n`;
const account = "sso_account_id = 111122223333\nsso_role_name = Tester\n";
const role = "role_arn = arn:aws:iam::111122223333:role/tester\n";
const token = (changes: object): string =>
  JSON.stringify({
    startUrl,
    region: "eu-central-1",
    accessToken: "t",
    expiresAt: "2099-01-01T00:00:00Z",
    ...changes,
  });
const left = {
  clientId: "c",
  clientSecret: "s",
  refreshToken: "r",
  expiresAt: "2020-01-01T00:00:00Z",
};
const login = JSON.stringify({
  accessToken: {
    accessKeyId: "AKIALOGIN",
    secretAccessKey: "s",
    sessionToken: "t",
    accountId: "111122223333",
    expiresAt: "2020-01-01T00:00:00Z",
  },
  clientId: "c",
  refreshToken: "r",
  dpopKey: generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey.export({
    type: "sec1",
    format: "pem",
  }),
});
const loginFile = `login/cache/${createHash("sha256").update("arn:me").digest("hex")}.json`;
const webRole = {
  AWS_ROLE_ARN: "arn:aws:iam::111122223333:role/ci",
  AWS_WEB_IDENTITY_TOKEN_FILE: "~/.aws/token",
};

test.each<[string, readonly string[], Machine]>([
  [
    "a session of SSO in another region than the cluster",
    ["portal.sso.eu-central-1.amazonaws.com:443"],
    {
      files: {
        config: `[profile dev]\nsso_session = corp\n${account}${session}`,
        [`sso/cache/${sha1("corp")}.json`]: token({}),
      },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a profile of SSO without a session of its own",
    ["portal.sso.eu-central-1.amazonaws.com:443"],
    {
      files: {
        config: `[profile dev]\nregion = us-east-2\nsso_region = eu-central-1\nsso_start_url = ${startUrl}\n${account}`,
        [`sso/cache/${sha1(startUrl)}.json`]: token({}),
      },
      variables: { AWS_PROFILE: "dev" },
    },
  ],
  [
    "a token of SSO that has expired",
    ["oidc.eu-central-1.amazonaws.com:443"],
    {
      files: {
        config: `[profile dev]\nsso_session = corp\n${account}${session}`,
        [`sso/cache/${sha1("corp")}.json`]: token(left),
      },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a role that is assumed with SSO",
    ["portal.sso.eu-central-1.amazonaws.com:443"],
    {
      files: {
        config: `[profile role]\n${role}source_profile = dev\nregion = ap-south-1\n[profile dev]\nsso_session = corp\n${account}${session}`,
        [`sso/cache/${sha1("corp")}.json`]: token({}),
      },
      variables: { CLOUD_PROFILE: "role" },
    },
  ],
  [
    "a login to the console",
    ["eu-west-1.signin.aws.amazon.com:443"],
    {
      files: {
        config: "[profile dev]\nlogin_session = arn:me\nregion = eu-west-1\n",
        [loginFile]: login,
      },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a role that keys assume in the profile's region",
    ["sts.ap-south-1.amazonaws.com:443"],
    {
      files: {
        config: `[profile role]\n${role}source_profile = base\nregion = ap-south-1\n`,
        credentials: `[base]\n${keys}`,
      },
      variables: { CLOUD_PROFILE: "role" },
    },
  ],
  [
    "a role that keys assume in the cluster's region",
    ["sts.us-west-2.amazonaws.com:443"],
    {
      files: {
        config: `[profile role]\n${role}source_profile = base\n`,
        credentials: `[base]\n${keys}`,
      },
      variables: { CLOUD_PROFILE: "role" },
    },
  ],
  [
    "a web identity of a profile",
    ["sts.eu-west-3.amazonaws.com:443"],
    {
      files: {
        config: `[profile ci]\n${role}web_identity_token_file = /dev/null\nregion = eu-west-3\n`,
      },
      variables: { CLOUD_PROFILE: "ci" },
    },
  ],
  [
    "a web identity of a profile without a region",
    ["sts.us-west-2.amazonaws.com:443"],
    {
      files: { config: `[profile ci]\n${role}web_identity_token_file = /dev/null\n` },
      variables: { CLOUD_PROFILE: "ci" },
    },
  ],
  [
    "a web identity of the environment, although there is a default profile with keys",
    ["sts.us-west-2.amazonaws.com:443"],
    { files: { credentials: `[default]\n${keys}`, token: "t" }, variables: webRole },
  ],
  [
    "a web identity with a region of its own and FIPS",
    ["sts-fips.us-east-1.amazonaws.com:443"],
    {
      files: { token: "t" },
      variables: { ...webRole, AWS_REGION: "us-east-1", AWS_USE_FIPS_ENDPOINT: "true" },
    },
  ],
  [
    "a profile with keys, while another is in AWS_PROFILE",
    ["ec2.us-west-2.amazonaws.com:443"],
    {
      files: {
        config: `[profile prod]\n${keys}[profile local]\nendpoint_url = https://local.test\nuse_fips_endpoint = true\n${keys}`,
      },
      variables: { CLOUD_PROFILE: "prod", AWS_PROFILE: "local" },
    },
  ],
  [
    "keys in variables, while a profile is in AWS_PROFILE",
    ["ec2.us-west-2.amazonaws.com:443"],
    {
      files: { config: `[profile local]\nendpoint_url = https://local.test\n${keys}` },
      variables: { CLOUD_ACCESS_KEY_ID: "AK", CLOUD_SECRET_ACCESS_KEY: "s", AWS_PROFILE: "local" },
    },
  ],
  [
    "a profile with FIPS",
    ["ec2-fips.us-west-2.amazonaws.com:443"],
    {
      files: { config: `[profile dev]\nuse_fips_endpoint = true\n${keys}` },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a profile with a dual stack",
    ["ec2.us-west-2.api.aws:443"],
    {
      files: { config: `[profile dev]\nuse_dualstack_endpoint = true\n${keys}` },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a profile with endpoints of its services",
    ["ec2.test:443"],
    {
      files: {
        config: `[profile dev]\nendpoint_url = https://all.test\nservices = own\n${keys}[services own]\nec2 =\n  endpoint_url = https://ec2.test\n`,
      },
      variables: { CLOUD_PROFILE: "dev" },
    },
  ],
  [
    "a profile whose endpoint is ignored",
    ["ec2.us-west-2.amazonaws.com:443"],
    {
      files: {
        config: `[profile dev]\nendpoint_url = https://all.test\nignore_configured_endpoint_urls = true\n${keys}`,
      },
      variables: { CLOUD_PROFILE: "dev", AWS_ENDPOINT_URL_EC2: "https://ec2.test" },
    },
  ],
  [
    "a role with an endpoint for its service",
    ["sts.test:443"],
    {
      files: {
        config: `[profile role]\n${role}source_profile = base\nservices = own\n[services own]\nsts =\n  endpoint_url = https://sts.test\n`,
        credentials: `[base]\n${keys}`,
      },
      variables: { CLOUD_PROFILE: "role" },
    },
  ],
])("%s", async (_, hosts, machine) => {
  const found = await listOn(machine);
  expect(found.hosts, found.stderr).toEqual([...hosts]);
});

const ownKeys = { CLOUD_ACCESS_KEY_ID: "AK", CLOUD_SECRET_ACCESS_KEY: "s" };

test.each([
  [
    "407 Proxy Authentication Required",
    /did not get past the proxy http:\S+ \(HTTPS_PROXY\): the proxy requires a login/,
  ],
  [
    "403 Forbidden",
    /did not get past the proxy http:\S+ \(HTTPS_PROXY\): the proxy does not allow the connection \(HTTP 403\)/,
  ],
])("a proxy that answers %s is named as the cause", async (refusal, text) => {
  const { hosts, stderr } = await listOn({ files: {}, variables: ownKeys }, refusal);
  expect(stderr).toMatch(text);
  expect(stderr).toContain("[machine-not-set-up]");
  expect(hosts).toEqual(["ec2.us-west-2.amazonaws.com:443"]);
});

test("a proxy that reaches nobody is named as the cause", async () => {
  const own = await listOn({ files: {}, variables: ownKeys });
  expect(own.stderr).toMatch(
    /did not get past the proxy http:\S+ \(HTTPS_PROXY\): the proxy did not forward the connection \(HTTP 502\)/,
  );
});

test("a proxy that cannot be reached is named as the cause", async () => {
  const gone = { ...ownKeys, HTTPS_PROXY: `http://127.0.0.1:${await freePort()}` };
  const { stderr } = await listOn({ files: {}, variables: gone });
  expect(stderr).toMatch(
    /was not sent, because the proxy http:\S+ \(HTTPS_PROXY\) cannot be reached: the connection/,
  );
});

test("a proxy is named as the cause for a source of credentials, too", async () => {
  const identity = await listOn({ files: { token: "t" }, variables: webRole }, "407 No");
  expect(identity.stderr).toMatch(
    /Cannot get credentials from the service that AWS_WEB.*: the proxy requires a login/,
  );
});

test("FIPS with an endpoint is refused before any request", async () => {
  const variables = {
    ...ownKeys,
    AWS_USE_FIPS_ENDPOINT: "true",
    AWS_ENDPOINT_URL_EC2: "https://ec2.test",
  };
  const { hosts, stderr } = await listOn({ files: {}, variables });
  expect([hosts, stderr]).toEqual([
    [],
    expect.stringContaining("Requests cannot go to two endpoints"),
  ]);
});
