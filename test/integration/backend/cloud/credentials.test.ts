import { expect, test } from "bun:test";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCloudBackend } from "../../../../src/backend/cloud/cloud-backend.ts";
import { openApi } from "../../../../src/backend/cloud/api/open-api.ts";
import type { ClusterError } from "../../../../src/errors.ts";
import { accounts } from "../../../local-cloud/endpoint/accounts.ts";
import { findSource } from "../../../support/find-source.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { freePort } from "../../../support/free-port.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { until } from "../../../support/until.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { type CloudFixture, openFixture, region } from "../../../support/cloud-fixture.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const noneGiven = { CLOUD_ACCESS_KEY_ID: undefined, CLOUD_SECRET_ACCESS_KEY: undefined };
const { accessKeyId, secretAccessKey } = accounts.main;

/** Lists the clusters, and returns the error if that fails. */
async function listWith(fixture: CloudFixture): Promise<unknown> {
  try {
    const backend = await createCloudBackend(
      { ...fixture.runtime, signal: neverAborted },
      { region },
    );
    return await backend.list(neverAborted);
  } catch (error) {
    return error;
  }
}

const json = (value: unknown): string => JSON.stringify(value);

const nameOf = async (fixture: CloudFixture) =>
  (await openApi({ ...fixture.runtime, signal: neverAborted }, region))(region).credentialSource;

const sharedFile = `[default]
aws_access_key_id = AKIDEFAULT
aws_secret_access_key = wrong

[dev]
aws_access_key_id = ${accessKeyId}
aws_secret_access_key = ${secretAccessKey}

[process]
credential_process = ./no-such-program

[half]
aws_access_key_id = ${accessKeyId}
`;

test.each(["CLOUD_PROFILE", "AWS_PROFILE"])(
  "%s selects a profile of the shared file",
  async (variable) => {
    await using folder = await scratchFolder();
    const file = join(folder.path, "credentials");
    await writeFile(file, sharedFile);
    await using fixture = await openFixture({
      ...noneGiven,
      [variable]: "dev",
      AWS_SHARED_CREDENTIALS_FILE: file,
    });
    expect(await listWith(fixture)).toEqual([]);
    expect(await nameOf(fixture)).toBe(`profile "dev" (${variable})`);
  },
);

test("a credential_process provides credentials, and runs once", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "give-credentials");
  const config = join(folder.path, "config");
  const answer = JSON.stringify({
    Version: 1,
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
  });
  await writeFile(program, `#!/bin/sh\necho asked >>${folder.path}/asked\necho '${answer}'\n`);
  await chmod(program, 0o755);
  await writeFile(config, `[profile made]\ncredential_process = ${program}\n`);
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: "made",
    AWS_CONFIG_FILE: config,
  });
  expect(await listWith(fixture)).toEqual([]);
  expect(await Bun.file(join(folder.path, "asked")).text()).toBe("asked\n");
});

test.each([
  ["reads its input", "cat; cat answer", /^$/],
  ["gives an empty session token", `printf '%s' '{"SessionToken":"",'; cat rest`, /^$/],
  ["has the variables of the program", `test "$CLOUD_PROFILE" = made && cat answer`, /^$/],
  ["fails", "echo oops >&2; exit 3", /"made" ended with status 3: oops\.$/],
  ["is killed", "kill -9 $$", /was ended by a signal/],
  ["prints no JSON", "echo hello", /must print JSON with Version 1/],
  ["gives another version", "cat version2", /must print JSON with Version 1/],
  ["gives old credentials", "cat expired", /gave credentials that have expired/],
])("a credential_process that %s", async (_, script, message) => {
  await using folder = await scratchFolder();
  const keys = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey };
  const answers = {
    answer: { Version: 1, ...keys },
    version2: { Version: 2, ...keys },
    expired: { Version: 1, ...keys, Expiration: "2020-01-01T00:00:00+00:00" },
  };
  const files = {
    ...Object.fromEntries(Object.entries(answers).map(([name, each]) => [name, json(each)])),
    rest: json(answers.answer).slice(1),
    program: script,
    config: `[profile made]\ncredential_process = cd ${folder.path} && . ./program\n`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, name), text);
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: "made",
    AWS_CONFIG_FILE: join(folder.path, "config"),
    PATH: process.env["PATH"],
  });
  const listed = await listWith(fixture);
  expect(listed instanceof Error ? listed.message : "").toMatch(message);
});

test.each(["dev", "from-dev"])(
  "a profile without its SSO session is explained: %s",
  async (profile) => {
    await using folder = await scratchFolder();
    const config = join(folder.path, "config");
    const role =
      "[profile from-dev]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = dev\n";
    await writeFile(
      config,
      `[profile dev]\nsso_session = work\n${role}[sso-session other]\nsso_region = us-west-2\n`,
    );
    await using fixture = await openFixture({
      ...noneGiven,
      CLOUD_PROFILE: profile,
      AWS_CONFIG_FILE: config,
    });
    expect(await listWith(fixture)).toMatchObject({
      id: "no-credentials",
      message: `Cannot get credentials from profile "${profile}" (CLOUD_PROFILE): profile "dev" needs a section [sso-session work] in ${config}.`,
    });
  },
);

test("progress names a source that takes long", async () => {
  await using folder = await scratchFolder();
  const config = join(folder.path, "config");
  await writeFile(config, "[profile slow]\ncredential_process = sleep 6\n");
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: "slow",
    AWS_CONFIG_FILE: config,
  });
  const notes: string[] = [];
  const progress = { ...fixture.runtime.progress, note: (text: string) => void notes.push(text) };
  expect(
    (await failureOf(openApi({ ...fixture.runtime, progress, signal: neverAborted }, region))).id,
  ).toBe("no-credentials");
  expect(notes).toEqual(['Waiting for credentials from profile "slow" (CLOUD_PROFILE).']);
});

test("renewed credentials are masked like the first ones", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "give-credentials");
  const config = join(folder.path, "config");
  const answer = {
    Version: 1,
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    SessionToken: "token-$n",
  };
  const expiring = JSON.stringify({
    ...answer,
    Expiration: new Date(Date.now() + 10_000),
  }).replaceAll('"', '\\"');
  const script = `#!/bin/sh\necho >>${folder.path}/asked\nn=$(wc -l <${folder.path}/asked)\necho "${expiring}"\n`;
  await writeFile(program, script, { mode: 0o755 });
  await writeFile(config, `[profile made]\ncredential_process = ${program}\n`);
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: "made",
    AWS_CONFIG_FILE: config,
  });
  const hidden: string[] = [];
  const progress = {
    ...fixture.runtime.progress,
    hide: (secret: string) => void hidden.push(secret),
  };
  const open = await openApi({ ...fixture.runtime, progress, signal: neverAborted }, region);
  expect(hidden).toContain("token-1");
  await until("they are renewed", async () => {
    await failureOf(open(region).call("DescribeRegions", {}, neverAborted));
    return hidden.includes("token-2");
  });
});

test.each([
  ["access key", Buffer.from(`aws_access_key_id = ${accessKeyId}\xff\n`, "latin1")],
  ["secret key", Buffer.from(`aws_secret_access_key = a b${secretAccessKey}\n`)],
  ["session token", Buffer.from("aws_session_token = tok\u00e9n\n")],
])("a profile whose %s can't be sent is named, not the network", async (part, line) => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "credentials");
  const whole = `[dev]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
  await writeFile(file, Buffer.concat([Buffer.from(whole), line]));
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: "dev",
    AWS_SHARED_CREDENTIALS_FILE: file,
  });
  expect(await listWith(fixture)).toMatchObject({
    id: "no-credentials",
    message: `Cannot get credentials from profile "dev" (CLOUD_PROFILE): its ${part} has white space, the end of a line or characters beyond ASCII.`,
  });
});

test.each([
  [
    "unknown",
    /^Cannot get credentials from profile "unknown" \(CLOUD_PROFILE\): there is no profile "unknown"/,
  ],
  [
    "process",
    /^Cannot get credentials from profile "process" \(CLOUD_PROFILE\): .*no-such-program/,
  ],
  ["half", /^Cannot get credentials from profile "half" \(CLOUD_PROFILE\): /],
])("profile %p fails with its own message", async (profile, message) => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "credentials");
  await writeFile(file, sharedFile);
  await using fixture = await openFixture({
    ...noneGiven,
    CLOUD_PROFILE: profile,
    AWS_SHARED_CREDENTIALS_FILE: file,
  });
  const error = await listWith(fixture);
  expect(error).toMatchObject({ id: "no-credentials", exitCode: 5 });
  expect((error as ClusterError).message.replaceAll("\n", " ")).toMatch(message);
});

// Shows R82, R84.
test("the default profile is used by default, and named if its credentials are rejected", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "credentials");
  await writeFile(file, sharedFile);
  await using fixture = await openFixture({ ...noneGiven, AWS_SHARED_CREDENTIALS_FILE: file });
  const error = await listWith(fixture);
  expect(error).toMatchObject({ id: "credentials-refused", exitCode: 5 });
  expect((error as ClusterError).message).toStartWith(
    'The cloud refused the credentials from profile "default" of the shared credentials file: ',
  );
});

test("an expired session is reported as such", async () => {
  const { expired } = accounts;
  await using fixture = await openFixture({
    CLOUD_ACCESS_KEY_ID: expired.accessKeyId,
    CLOUD_SECRET_ACCESS_KEY: expired.secretAccessKey,
    CLOUD_SESSION_TOKEN: expired.sessionToken,
  });
  const error = await listWith(fixture);
  expect(error).toMatchObject({
    id: "credentials-refused",
    hint: "Renew the session, and set the variables again.",
  });
});

test("an account can't see the clusters of another", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", { counts: { master: 1, agent: 0, public_agent: 0 } });
  await fixture.create(backend, request, neverAborted);
  const { other } = accounts;
  const environment = {
    ...fixture.runtime.environment,
    CLOUD_ACCESS_KEY_ID: other.accessKeyId,
    CLOUD_SECRET_ACCESS_KEY: other.secretAccessKey,
  };
  const foreign = await createCloudBackend(
    { ...fixture.runtime, environment, signal: neverAborted },
    { region },
  );
  expect(await foreign.find("default", neverAborted)).toBeUndefined();
});

test("missing credentials are reported quickly, even if the metadata service never answers", async () => {
  // Accepts connections and never answers.
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  await using fixture = await openFixture({
    ...noneGiven,
    AWS_EC2_METADATA_DISABLED: undefined,
    AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${silent.port}`,
  });
  // The SDK alone would take minutes, which exceeds the test's time limit.
  expect(await listWith(fixture)).toMatchObject({ id: "no-credentials", exitCode: 5 });
});

test("on a machine whose role has no credentials, the other sources are listed too", async () => {
  // Some clouds have a service at that address that doesn't know roles. It is not mistaken for EC2's.
  using server = serveOnLoopback(() => new Response("no", { status: 404 }));
  const missing = await failureOf(
    findSource({ AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url.href }),
  );
  expect(missing.id).toBe("no-credentials");
  using ec2 = serveOnLoopback(() => new Response("token"));
  const source = await findSource({ AWS_EC2_METADATA_SERVICE_ENDPOINT: ec2.url.href });
  expect(source.name).toBe("this computer's role (instance metadata)");
  expect(source.hint).toMatch(
    /CLOUD_ACCESS_KEY_ID and .*; CLOUD_PROFILE; .*default profile in .*Assign a role to this computer/,
  );
});

test.each([
  ["", 1],
  ["false", 1],
  ["true", 0],
])(
  "with AWS_EC2_METADATA_DISABLED=%p, the metadata service is asked %d times",
  async (disabled, times) => {
    const asked: string[] = [];
    const answer = (request: Request): Response => {
      asked.push(`${request.method} ${new URL(request.url).pathname}`);
      return new Response("token");
    };
    using server = serveOnLoopback(answer);
    const service = {
      AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url.href,
      AWS_EC2_METADATA_DISABLED: disabled,
    };
    const found = await findSource(service).catch(() => undefined);
    expect(found !== undefined).toBe(times > 0);
    expect(asked.filter((request) => request === "PUT /latest/api/token")).toHaveLength(times);
  },
);

test("an interrupt while the metadata service is asked is not taken for its absence", async () => {
  const reason = new Error("interrupted");
  const service = { AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${await freePort()}` };
  const error: unknown = await failureOf(findSource(service, AbortSignal.abort(reason)));
  expect(error).toBe(reason);
  expect(await failureOf(findSource(service))).toMatchObject({ id: "no-credentials" });
});
