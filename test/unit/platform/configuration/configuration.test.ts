import { expect, test } from "bun:test";
import { renderConfiguration } from "../../../../src/platform/configuration/configuration-file.ts";
import {
  type Configuration,
  baseConfiguration,
  configurationSecrets,
  mergeConfiguration,
  superuserOf,
  webSchemeOf,
} from "../../../../src/platform/configuration/configuration.ts";

const input = {
  clusterName: "default",
  variant: "oss",
  nodes: [
    { role: "master", privateAddress: "10.0.0.4" },
    { role: "agent", privateAddress: "10.0.0.5" },
    { role: "agent", privateAddress: "10.0.0.6" },
  ],
  bootstrapUrl: "http://10.0.0.4:10700",
  resolvers: ["10.0.0.2"],
  ipDetectPublicFile: undefined,
  licenseKey: undefined,
} as const;

test("the base of an open source cluster", async () => {
  expect(await renderConfiguration(baseConfiguration(input))).toMatchInlineSnapshot(`
    "bootstrap_url: "http://10.0.0.4:10700"
    cluster_name: "default"
    exhibitor_storage_backend: "static"
    master_discovery: "static"
    master_list:
      - "10.0.0.4"
    agent_list:
      - "10.0.0.5"
      - "10.0.0.6"
    public_agent_list: []
    resolvers:
      - "10.0.0.2"
    "
  `);
});

// Shows R34, R35.
test("the enterprise variant adds superuser, fault domain and license", async () => {
  const configuration = baseConfiguration({
    ...input,
    variant: "enterprise",
    ipDetectPublicFile: "genconf/ip-detect-public",
    licenseKey: "line one\nline two",
  });
  const open = baseConfiguration(input);
  const added = Object.fromEntries(Object.entries(configuration).filter(([key]) => !(key in open)));
  expect(await renderConfiguration(added)).toMatchInlineSnapshot(`
    "ip_detect_public_filename: "genconf/ip-detect-public"
    superuser_username: "admin"
    superuser_password_hash: "$6$cluster.e2e$aqgsYe2pgNT7kyAc0V3Ie3ftLrxLm8u98fKs1Gk6rwo19CIQz.VLPBgSbzEk.C2KCfWDs.l792fQVsCYrVeVA."
    fault_domain_enabled: false
    license_key_contents: "line one\\nline two"
    "
  `);
});

// Shows R36, R54.
test("without a license the key is not given", () => {
  expect(baseConfiguration({ ...input, variant: "enterprise" })).not.toHaveProperty(
    "license_key_contents",
  );
});

// Shows R34.
test.skipIf(Bun.which("openssl") === null)(
  "the default password hash is that of admin",
  async () => {
    const hash = String(
      baseConfiguration({ ...input, variant: "enterprise" })["superuser_password_hash"],
    );
    expect(await Bun.$`openssl passwd -6 -salt ${hash.split("$")[2]} admin`.text()).toBe(
      `${hash}\n`,
    );
  },
);

test.each([
  [{ a: 1, security: "permissive" }, { a: 2 }, undefined, { a: 2, security: "permissive" }],
  [{ a: 1 }, { security: "disabled" }, "strict", { a: 1, security: "strict" }],
  [
    { list: [1, 2], map: { x: 1 } },
    { list: [], map: { y: 1 } },
    undefined,
    { list: [], map: { y: 1 } },
  ],
  [
    { superuser_username: "admin" },
    { superuser_username: null },
    undefined,
    { superuser_username: null },
  ],
] as const)("%j with %j and --security-mode %p", (base, extra, mode, merged) => {
  expect(mergeConfiguration(base, extra, mode)).toEqual(merged);
});

test("secrets are found at any depth, settings are not", () => {
  expect(
    configurationSecrets({
      license_key_contents: "LICENSE",
      superuser_password_hash: "$6$hash",
      cluster_docker_credentials: { auths: { "registry.example": { auth: "YXV0aA==" } } },
      cluster_docker_credentials_enabled: "true",
      storage: [{ aws_secret_access_key: "key" }],
      superuser_username: "admin",
      resolvers: ["10.0.0.2"],
    }),
  ).toEqual(["LICENSE", "$6$hash", "YXV0aA==", "key"]);
});

test("numbers are secrets too, but settings are not", () => {
  const numbers = { admin_password: 123456, token: 123456789012345678901n };
  expect(
    configurationSecrets({ ...numbers, auth_token: null, secret_store: true, password: "" }),
  ).toEqual(["123456", "123456789012345678901"]);
});

test.each([
  ["oss", {}, undefined, "http"],
  ["enterprise", {}, undefined, "https"],
  ["enterprise", { security: "disabled" }, undefined, "http"],
  ["enterprise", { security: "disabled" }, "permissive", "https"],
  ["enterprise", { security: "strict" }, "disabled", "http"],
] as const)(
  "%s with %j and --security-mode %p: the web UI is expected at %s",
  (variant, extra, mode, scheme) => {
    expect(webSchemeOf(variant, extra, mode)).toBe(scheme);
  },
);

test("the superuser is that of the user's configuration, whose password is known only if it is the usual one", () => {
  const { superuser_password_hash: usual } = baseConfiguration({ ...input, variant: "enterprise" });
  const superusers: readonly (readonly [Configuration, string, string | undefined])[] = [
    [{}, "admin", "admin"],
    [{ superuser_username: "ops", superuser_password_hash: "$6$other" }, "ops", undefined],
    [{ superuser_username: 7, superuser_password_hash: usual }, "7", "admin"],
    [{ superuser_username: true }, "admin", "admin"],
  ];
  for (const [extra, username, password] of superusers)
    expect(superuserOf(extra)).toEqual({ username, password });
});
