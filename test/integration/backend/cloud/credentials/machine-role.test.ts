/** The role of the machine: from a container, over IPv6, and where only version 1 of the metadata service answers. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unmarked } from "../../../../../src/outside-text.ts";
import { findSource } from "../../../../support/find-source.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { serveOnLoopback } from "../../../../support/loopback-server.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { identity, keys } from "./role-credentials.ts";

interface Service {
  /** Undefined: the answer gets lost. */
  readonly token?: () => Response | undefined;
  readonly requiresToken?: boolean;
  readonly role?: string;
  readonly hostname?: string;
}

function serveMetadata({
  token = () => new Response("token-1"),
  requiresToken = false,
  role = "tester",
  hostname = "127.0.0.1",
}: Service) {
  const roles = "/latest/meta-data/iam/security-credentials/";
  return serveOnLoopback(
    async (request) => {
      const { pathname } = new URL(request.url);
      if (request.method === "PUT") return token() ?? (await new Promise<Response>(() => {}));
      const isAllowed =
        request.headers.get("x-aws-ec2-metadata-token") === "token-1" || !requiresToken;
      if (!isAllowed) return new Response("", { status: 401 });
      if (pathname === roles)
        return role === "" ? new Response("", { status: 404 }) : new Response(`${role}\n`);
      return pathname === `${roles}${role}`
        ? Response.json(keys)
        : new Response("", { status: 404 });
    },
    { address: hostname },
  );
}

const find = async (
  server: { readonly url: URL },
  variables: Readonly<Record<string, string>> = {},
) => findSource({ AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url.href, ...variables });

const lost = { token: () => undefined };

test.each<[string, Service]>([
  ["with a token", { requiresToken: true }],
  ["in a container, which the token's answer doesn't reach", lost],
  ["of version 1, which has no tokens", { token: () => new Response("", { status: 404 }) }],
  ["over IPv6", { hostname: "::1", requiresToken: true }],
])("a role is found %s", async (_, service) => {
  using server = serveMetadata(service);
  const source = await find(server);
  expect(source.name).toBe("this computer's role (instance metadata)");
  expect(await source.provide()).toEqual(identity);
});

test.each<[string, Service, Readonly<Record<string, string>>]>([
  [
    "if version 1 is disabled, and no token arrives",
    lost,
    { AWS_EC2_METADATA_V1_DISABLED: "true" },
  ],
  [
    "if a service knows neither tokens nor roles",
    { token: () => new Response("", { status: 404 }), role: "" },
    {},
  ],
])("no role is found %s", async (_, service, variables) => {
  using server = serveMetadata(service);
  expect((await failureOf(find(server, variables))).id).toBe("no-credentials");
});

test.each<[string, Service, RegExp]>([
  [
    "requires the token that doesn't arrive",
    { ...lost, requiresToken: true },
    /requires a token.*hop limit/,
  ],
  ["has no role", { role: "" }, /the machine has no role/],
  [
    "has no credentials for its role",
    { role: "other/role" },
    /no credentials for the role "other\/role" \(HTTP 404\)/,
  ],
])("a service that %s says so", async (_, service, reason) => {
  using server = serveMetadata(service);
  const source = await find(server);
  expect(unmarked((await failureOf(source.provide())).message)).toMatch(reason);
});

const assumed = (key: string): string =>
  `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>${key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`;

test.each([
  [
    "[profile role]\nrole_arn = arn:one\ncredential_source = Ec2InstanceMetadata\n",
    ["AKROLE arn:one"],
  ],
  [
    "[profile role]\nrole_arn = arn:two\nsource_profile = base\n[profile base]\nrole_arn = arn:one\ncredential_source = Ec2InstanceMetadata\n",
    ["AKROLE arn:one", "ASIA1 arn:two"],
  ],
  [
    "[profile role]\nrole_arn = arn:one\nsource_profile = base\n[profile base]\ncredential_source = Ec2InstanceMetadata\n",
    ["AKROLE arn:one"],
  ],
])(
  "the roles of %j are assumed with the machine's, which is asked where the environment says",
  async (config, roles) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "config");
    await writeFile(path, config);
    using server = serveMetadata({ requiresToken: true, hostname: "::1" });
    const asked: string[] = [];
    using sts = serveOnLoopback(async (request) => {
      const [, key] = /Credential=(\w+)\//.exec(request.headers.get("authorization") ?? "") ?? [];
      asked.push(`${key} ${new URLSearchParams(await request.text()).get("RoleArn")}`);
      return new Response(assumed(`ASIA${asked.length}`), {
        headers: { "content-type": "text/xml" },
      });
    });
    const variables = {
      AWS_CONFIG_FILE: path,
      CLOUD_PROFILE: "role",
      AWS_ENDPOINT_URL_STS: sts.url.href,
    };
    const source = await find(server, variables);
    expect(await source.provide()).toMatchObject({ accessKeyId: `ASIA${roles.length}` });
    expect(asked).toEqual([...roles]);
  },
);

test("an endpoint that is set but empty, or a wrong mode, doesn't hide the service", async () => {
  const error = await failureOf(
    findSource({
      AWS_EC2_METADATA_SERVICE_ENDPOINT: "",
      AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: "IPv5",
    }),
  );
  expect(error).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining('"IPv5"'),
  });
});
