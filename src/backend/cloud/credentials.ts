import { join } from "node:path";
import type { EC2ClientConfig } from "@aws-sdk/client-ec2";
import { ClusterError, messageOf } from "../../errors.ts";
import { homeFolder } from "../../store/state-folder.ts";
import { outsideLine, withoutFullStop } from "../../system/printable.ts";
import type { Environment } from "../../system/runtime.ts";
import { orAborted } from "../../system/time-limit.ts";
import { requestDirectly } from "./api/request-handler.ts";

export interface Identity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** A source of credentials. If `provide` is `undefined`, the SDK's own chain finds them. */
export interface CredentialSource {
  /** Names the source in messages: `profile "dev" (CLOUD_PROFILE)`. */
  readonly name: string;
  readonly profile: string | undefined;
  readonly provide: (() => Promise<Identity>) | undefined;
  /** What to do if the source turns out to have no credentials. */
  readonly hint: string;
}

/** Settings, such as our request handler, for providers that send requests themselves (SSO, roles). */
export type InnerClient = Pick<EC2ClientConfig, "region" | "requestHandler">;

/** Chooses a source by the variables that are set, but doesn't use it yet. Throws `no-credentials` with what is missing. */
export async function findCredentials(
  environment: Environment,
  innerClient: InnerClient,
  signal: AbortSignal,
): Promise<CredentialSource> {
  const own = fromVariables(environment, "CLOUD");
  if (own !== undefined) return own;
  const variable = ["CLOUD_PROFILE", "AWS_PROFILE"].find((name) => isSet(environment, name));
  if (variable !== undefined)
    return fromProfile(environment, { profile: environment[variable] ?? "", origin: `(${variable})` }, innerClient);
  const usual = fromVariables(environment, "AWS");
  if (usual !== undefined) return usual;
  const service = ["AWS_WEB_IDENTITY_TOKEN_FILE", ...containerVariables].find((name) => isSet(environment, name));
  if (service !== undefined) {
    const hint = `Check ${service}, or unset it and ${usualHint}`;
    return { name: `the service that ${service} names`, profile: undefined, provide: undefined, hint };
  }
  if (await hasDefaultProfile(sharedFiles(environment))) {
    const origin = "of the shared credentials file";
    return fromProfile(environment, { profile: "default", origin }, innerClient);
  }
  return fromThisMachine(environment, signal);
}

const containerVariables = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];

const isSet = (environment: Environment, name: string): boolean => ![undefined, ""].includes(environment[name]);

function fromVariables(environment: Environment, prefix: "CLOUD" | "AWS"): CredentialSource | undefined {
  const names = [`${prefix}_ACCESS_KEY_ID`, `${prefix}_SECRET_ACCESS_KEY`] as const;
  const tokenName = `${prefix}_SESSION_TOKEN`;
  const present = [...names, tokenName].filter((name) => isSet(environment, name));
  if (present.length === 0) return undefined;
  const missing = names.filter((name) => !isSet(environment, name));
  if (missing.length > 0) throw incomplete(present, missing);
  const unusable = present.filter((name) => !/^[!-~]+$/.test(environment[name] ?? ""));
  if (unusable.length > 0) throw notPlain(unusable);
  const identity: Identity = {
    accessKeyId: environment[names[0]] ?? "",
    secretAccessKey: environment[names[1]] ?? "",
    ...(isSet(environment, tokenName) && { sessionToken: environment[tokenName] ?? "" }),
  };
  const provide = (): Promise<Identity> => Promise.resolve(identity);
  return { name: `the variables ${present.join(", ")}`, profile: undefined, provide, hint: "Set them again." };
}

function incomplete(present: readonly string[], missing: readonly string[]): ClusterError {
  const verb = present.length === 1 ? "is" : "are";
  return new ClusterError("no-credentials", `${present.join(", ")} ${verb} set without ${missing.join(" and ")}.`, {
    hint: `Set ${missing.join(" and ")} too, or unset ${present.join(" and ")} to use another source.`,
    facts: { present, missing },
  });
}

/** The cloud would refuse a secret with the end of a line as a wrong signature, and a key with one couldn't be sent. */
function notPlain(unusable: readonly string[]): ClusterError {
  const message = `${unusable.join(" and ")} must not contain white space, the end of a line or characters beyond ASCII.`;
  return new ClusterError("no-credentials", message, {
    hint: `Set ${unusable.join(" and ")} again. A secret that was copied into a CI system may end with a line break.`,
    facts: { unusable },
  });
}

/** `origin` follows the profile's name in messages. */
async function fromProfile(
  environment: Environment,
  { profile, origin }: { readonly profile: string; readonly origin: string },
  innerClient: InnerClient,
): Promise<CredentialSource> {
  const { fromIni } = await import("@aws-sdk/credential-provider-ini");
  const files = sharedFiles(environment);
  const provide = fromIni({ profile, ...files, clientConfig: innerClient });
  return {
    name: `profile "${profile}" ${origin}`,
    profile,
    provide: async () =>
      provide().catch(async (error: unknown) => {
        throw (await missingSession(profile, files)) ?? error;
      }),
    hint: `Check this profile in ${files.filepath} and ${files.configFilepath}. To renew an SSO session: aws sso login --profile ${profile}`,
  };
}

/** If an SSO session has no section, the SDK's own error doesn't say so. The profile may also be the source of the one that was asked for. */
async function missingSession(profile: string, files: SharedFiles): Promise<Error | undefined> {
  const { loadSsoSessionData, parseKnownFiles } = await import("@smithy/core/config");
  const [profiles, sessions] = await Promise.all([parseKnownFiles(files), loadSsoSessionData(files)]);
  const names = [profile, profiles[profile]?.["source_profile"] ?? profile];
  for (const name of names) {
    const session = profiles[name]?.["sso_session"];
    if (session !== undefined && sessions[session] === undefined)
      return new Error(`profile "${name}" needs a section [sso-session ${session}] in ${files.configFilepath}`);
  }
  return undefined;
}

async function fromThisMachine(environment: Environment, signal: AbortSignal): Promise<CredentialSource> {
  const sources = [
    "CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY",
    "CLOUD_PROFILE",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    `a default profile in ${sharedFiles(environment).filepath}`,
  ];
  if (await hasMetadataService(environment, signal)) {
    const hint = `Nothing was found in the other sources either: ${sources.join("; ")}. Assign a role to this machine, or ${usualHint}`;
    return { name: "this machine's role (instance metadata)", profile: undefined, provide: undefined, hint };
  }
  const lookedFor = [...sources, "instance metadata"];
  throw new ClusterError("no-credentials", `No cloud credentials were found. Looked for: ${lookedFor.join("; ")}.`, {
    hint: `S${usualHint.slice(1)}`,
    facts: { lookedFor },
  });
}

const usualHint =
  "set CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY, or set CLOUD_PROFILE to a profile of the shared credentials file.";

const defaultEndpoint = "http://169.254.169.254";
const timeoutMs = 800;

/**
 * Whether this machine has a metadata service. Checked before the SDK's own chain uses that address: the chain sets no limit on connecting, so it
 * takes minutes where packets to the address are dropped.
 */
async function hasMetadataService(environment: Environment, signal: AbortSignal): Promise<boolean> {
  if (!["", "false"].includes(environment["AWS_EC2_METADATA_DISABLED"] ?? "")) return false;
  try {
    const url = new URL("/latest/api/token", environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] ?? defaultEndpoint);
    const headers = { "x-aws-ec2-metadata-token-ttl-seconds": "60" };
    // Other clouds have a service at this address too, but it doesn't know such tokens.
    return (await requestDirectly({ url, method: "PUT", headers, timeoutMs }, signal)).status === 200;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

interface SharedFiles {
  readonly filepath: string;
  readonly configFilepath: string;
}

function sharedFiles(environment: Environment): SharedFiles {
  const folder = join(homeFolder(environment), ".aws");
  return {
    filepath: environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(folder, "credentials"),
    configFilepath: environment["AWS_CONFIG_FILE"] ?? join(folder, "config"),
  };
}

/**
 * Whether the default profile says where credentials are. The SDK alone cannot tell, because it answers "could not resolve" in two cases: for a
 * missing profile, where the next source is tried, and for a profile that fails, which must be reported.
 */
export async function hasDefaultProfile(files: SharedFiles): Promise<boolean> {
  const { parseKnownFiles } = await import("@smithy/core/config");
  const profiles = await parseKnownFiles({ ...files, ignoreCache: true });
  return Object.keys(profiles["default"] ?? {}).some((setting) => credentialSetting.test(setting));
}

const credentialSetting =
  /^(?:aws_access_key_id|credential_process|sso_\w+|role_arn|web_identity_token_file|login_session)$/;

/** Credentials are renewed when they have less than this left. */
const renewalMs = 5 * 60_000;

/** Calls the provider again only when its credentials are about to expire, because a `credential_process` may prompt a person. */
export function cachedUntilExpiry(provide: () => Promise<Identity>): () => Promise<Identity> {
  const latest: { identity?: Identity } = {};
  return async () => {
    const expiration = latest.identity?.expiration;
    if (latest.identity === undefined || (expiration !== undefined && expiration.getTime() - Date.now() < renewalMs)) {
      latest.identity = await provide();
    }
    return latest.identity;
  };
}

/** The limit for the SDK's own chain, which sets none. A profile has no limit, because it may prompt a person. */
const chainLimitMs = 30_000;

/** Gets credentials from the source. Throws `no-credentials` with the source's own message, or the signal's reason. */
export async function resolveCredentials(
  source: CredentialSource,
  provide: () => Promise<Identity>,
  signal: AbortSignal,
): Promise<Identity> {
  try {
    const isChain = source.provide === undefined;
    const bounded = isChain ? AbortSignal.any([signal, AbortSignal.timeout(chainLimitMs)]) : signal;
    // Providers take no signal.
    return await orAborted(provide(), bounded);
  } catch (error) {
    signal.throwIfAborted();
    const reason = withoutFullStop(outsideLine(messageOf(error)));
    throw new ClusterError("no-credentials", `Cannot get credentials from ${source.name}: ${reason}.`, {
      hint: source.hint,
      facts: { source: source.name, ...(source.profile !== undefined && { profile: source.profile }) },
      cause: error,
    });
  }
}
