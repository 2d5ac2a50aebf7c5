import type { NodeRecord, Role, Variant, WebScheme } from "../../model/cluster-record.ts";
import { isMapping } from "../../model/reader.ts";

/**
 * `config.yaml` as a mapping. It may hold the license and password hashes, so it never goes into
 * output, logs or facts.
 */
export type Configuration = Readonly<Record<string, unknown>>;

export const securityModes = ["disabled", "permissive", "strict"] as const;
export type SecurityMode = (typeof securityModes)[number];

interface BaseConfigurationInput {
  readonly clusterName: string;
  readonly variant: Variant;
  /** Each node has a private address. */
  readonly nodes: readonly Pick<NodeRecord, "role" | "privateAddress">[];
  /** The URL where the nodes will find `genconf/serve/`, such as `http://10.0.0.4:10700`. */
  readonly bootstrapUrl: string;
  /** IPv4 addresses of the DNS servers that the nodes actually use. */
  readonly resolvers: readonly string[];
  /** Path of the public ip-detect script as genconf knows it (`genconf/ip-detect-public`), if there is one. */
  readonly ipDetectPublicFile: string | undefined;
  readonly licenseKey: string | undefined;
}

/**
 * Returns the minimum that the artifact needs. Superuser, password hash and license are for the
 * enterprise variant only.
 */
export function baseConfiguration(input: BaseConfigurationInput): Configuration {
  return {
    bootstrap_url: input.bootstrapUrl,
    cluster_name: input.clusterName,
    exhibitor_storage_backend: "static",
    master_discovery: "static",
    master_list: addresses(input, "master"),
    agent_list: addresses(input, "agent"),
    public_agent_list: addresses(input, "public_agent"),
    resolvers: input.resolvers,
    ...(input.ipDetectPublicFile === undefined
      ? {}
      : { ip_detect_public_filename: input.ipDetectPublicFile }),
    ...(input.variant === "enterprise" ? enterpriseConfiguration(input.licenseKey) : {}),
  };
}

/**
 * The user's values override the base, and `--security-mode` overrides both. Values are replaced as
 * a whole, never merged.
 */
export const mergeConfiguration = (
  base: Configuration,
  extra: Configuration,
  securityMode: SecurityMode | undefined,
): Configuration => ({
  ...base,
  ...extra,
  ...(securityMode === undefined ? {} : { security: securityMode }),
});

/** Whether the masters will use TLS: those of the enterprise variant do unless its security is disabled. */
export function webSchemeOf(
  variant: Variant,
  extra: Configuration,
  securityMode: SecurityMode | undefined,
): WebScheme {
  const security = securityMode ?? extra["security"];
  return variant === "enterprise" && security !== "disabled" ? "https" : "http";
}

const addresses = (
  { nodes }: BaseConfigurationInput,
  role: Role,
): readonly (string | undefined)[] =>
  nodes.filter((node) => node.role === role).map((node) => node.privateAddress);

/**
 * The sha512-crypt hash of the superuser's default password, `admin`, which the documentation
 * names, so it isn't secret. The salt is fixed, so that the same cluster always gets the same
 * configuration. `openssl passwd -6 -salt cluster.e2e admin` prints it.
 */
const defaultPasswordHash =
  "$6$cluster.e2e$aqgsYe2pgNT7kyAc0V3Ie3ftLrxLm8u98fKs1Gk6rwo19CIQz.VLPBgSbzEk.C2KCfWDs.l792fQVsCYrVeVA.";

const defaultUsername = "admin";
const defaultPassword = "admin";

/** Returns the superuser of the user's configuration. `password` is undefined if only its hash is known. */
export function superuserOf(extra: Configuration) {
  const { superuser_username: username, superuser_password_hash: hash } = extra;
  return {
    username:
      typeof username === "string" || typeof username === "number"
        ? String(username)
        : defaultUsername,
    password: hash === undefined || hash === defaultPasswordHash ? defaultPassword : undefined,
  };
}

const enterpriseConfiguration = (licenseKey: string | undefined): Configuration => ({
  superuser_username: defaultUsername,
  superuser_password_hash: defaultPasswordHash,
  fault_domain_enabled: false,
  ...(licenseKey === undefined ? {} : { license_key_contents: licenseKey }),
});

/**
 * Returns the secrets of a configuration, for `Progress.hide`: strings at any depth under a key
 * that suggests a secret. The artifact's errors may quote them.
 */
export const configurationSecrets = (configuration: Configuration): readonly string[] => [
  ...new Set(
    Object.entries(configuration).flatMap(([key, value]) =>
      isSecretKey(key) ? textsIn(value) : secretsIn(value),
    ),
  ),
];

const isSecretKey = (key: string): boolean =>
  /password|passwd|secret|credential|token|private_key|license_key/i.test(key);

function secretsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(secretsIn);
  return isMapping(value) ? configurationSecrets(value) : [];
}

/**
 * A number is a secret too, of any size. Words such as `true` are settings; hiding them would mask
 * half of the output.
 */
function textsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (isMapping(value)) return Object.values(value).flatMap(textsIn);
  const text = String(value);
  return text === "" || /^(true|false|yes|no|null|none)$/i.test(text) ? [] : [text];
}
