import type { FetchHttpHandler } from "@smithy/fetch-http-handler";
import { ClusterError, OwnError, messageOf } from "../../../errors.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { outsideLine, withoutFullStop } from "../../../system/printable.ts";
import type { Environment } from "../../../system/runtime.ts";
import { orAborted } from "../../../system/time-limit.ts";
import { variable } from "../../../system/variable.ts";
import { type Identity, findMachineRole } from "./machine-role.ts";
import { type Profile, sourceProfiles } from "./profile.ts";
import type { CloudSettings } from "./settings.ts";

/** A source of credentials. */
export interface CredentialSource {
  /** Names the source in messages: `profile "dev" (CLOUD_PROFILE)`. */
  readonly name: string;
  readonly profile: string | undefined;
  readonly provide: () => Promise<Identity>;
  /** A source that may prompt a person has no limit. */
  readonly limitMs: number | undefined;
  /** What to do if the source turns out to have no credentials. */
  readonly hint: string;
  /** What to do when the credentials have expired. */
  readonly renewal: string;
}

export interface CredentialPlace {
  readonly environment: Environment;
  readonly profile: Profile;
  readonly settings: CloudSettings;
  /** The cluster's region. Services that issue credentials are asked there, if neither the profile nor they themselves name another. */
  readonly region: string;
  /** For providers that send requests. */
  readonly requestHandler: FetchHttpHandler;
}

type Find = (
  place: CredentialPlace,
  signal: AbortSignal,
) => CredentialSource | undefined | Promise<CredentialSource | undefined>;

/** In order of precedence. Each has one provider of its own: the SDK's chain would choose again, by rules of its own. */
const sources: readonly Find[] = [
  ({ environment }) => fromVariables(environment, "CLOUD"),
  (place) => (place.profile.variable === undefined ? undefined : fromProfile(place)),
  ({ environment }) => fromVariables(environment, "AWS"),
  fromWebIdentity,
  fromContainer,
  (place) => (namesCredentials(place.profile) ? fromProfile(place) : undefined),
  fromMachineRole,
];

/** Chooses a source, but doesn't use it yet. Throws `no-credentials` with what is missing. */
export async function findCredentials(
  place: CredentialPlace,
  signal: AbortSignal,
): Promise<CredentialSource> {
  for (const find of sources) {
    const source = await find(place, signal);
    if (source !== undefined) return source;
  }
  const lookedFor = [...otherSources(place), "instance metadata"];
  throw new ClusterError(
    "no-credentials",
    `No cloud credentials were found. Looked for: ${lookedFor.join("; ")}.`,
    {
      hint: `S${usualHint.slice(1)}`,
      facts: { lookedFor },
    },
  );
}

const otherSources = ({ profile: { files } }: CredentialPlace): readonly string[] => [
  "CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY",
  "CLOUD_PROFILE",
  "AWS_PROFILE",
  "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
  `a default profile in ${files.filepath}`,
];

const usualHint =
  "set CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY, or set CLOUD_PROFILE to a profile of the shared credentials file.";

const setAgain = "Renew the session, and set the variables again.";

/** A service may be unreachable, and no provider sets a limit for all its attempts. */
const serviceLimitMs = 30_000;

function fromVariables(
  environment: Environment,
  prefix: "CLOUD" | "AWS",
): CredentialSource | undefined {
  const names = [`${prefix}_ACCESS_KEY_ID`, `${prefix}_SECRET_ACCESS_KEY`] as const;
  const tokenName = `${prefix}_SESSION_TOKEN`;
  const present = [...names, tokenName].filter((name) => variable(environment, name) !== undefined);
  if (present.length === 0) return undefined;
  const missing = names.filter((name) => variable(environment, name) === undefined);
  if (missing.length > 0) throw incomplete(present, missing);
  const unusable = present.filter((name) => !isPlain(variable(environment, name) ?? ""));
  if (unusable.length > 0) throw notPlain(unusable);
  const identity: Identity = {
    accessKeyId: variable(environment, names[0]) ?? "",
    secretAccessKey: variable(environment, names[1]) ?? "",
    ...(variable(environment, tokenName) !== undefined && {
      sessionToken: variable(environment, tokenName) ?? "",
    }),
  };
  return {
    name: `the variables ${present.join(", ")}`,
    profile: undefined,
    provide: () => Promise.resolve(identity),
    limitMs: undefined,
    hint: "Set them again.",
    renewal: setAgain,
  };
}

function incomplete(present: readonly string[], missing: readonly string[]): ClusterError {
  const verb = present.length === 1 ? "is" : "are";
  return new ClusterError(
    "no-credentials",
    `${present.join(", ")} ${verb} set without ${missing.join(" and ")}.`,
    {
      hint: `Set ${missing.join(" and ")} too, or unset ${present.join(" and ")} to use another source.`,
      facts: { present, missing },
    },
  );
}

/** The cloud would refuse a secret with the end of a line as a wrong signature, and a key with one couldn't be sent. */
function notPlain(unusable: readonly string[]): ClusterError {
  const message = `${unusable.join(" and ")} must not contain white space, the end of a line or characters beyond ASCII.`;
  return new ClusterError("no-credentials", message, {
    hint: `Set ${unusable.join(" and ")} again. A secret that was copied into a CI system may end with a line break.`,
    facts: { unusable },
  });
}

/** A role for a job of a CI system or for a container, for a token in a file. */
function fromWebIdentity(place: CredentialPlace): CredentialSource | undefined {
  const { environment } = place;
  const name = "AWS_WEB_IDENTITY_TOKEN_FILE";
  const file = variable(environment, name);
  if (file === undefined) return undefined;
  const RoleArn = variable(environment, "AWS_ROLE_ARN");
  if (RoleArn === undefined) throw incomplete([name], ["AWS_ROLE_ARN"]);
  const RoleSessionName =
    variable(environment, "AWS_ROLE_SESSION_NAME") ?? `cluster-e2e-${Date.now()}`;
  const region = variable(environment, "AWS_REGION") ?? place.region;
  return fromService(name, async () => {
    const { getDefaultRoleAssumerWithWebIdentity } = await import("@aws-sdk/nested-clients/sts");
    const WebIdentityToken = (await readOwnText(file)).trim();
    const assume = getDefaultRoleAssumerWithWebIdentity(stsClient(place, region));
    return await assume({ RoleArn, RoleSessionName, WebIdentityToken });
  });
}

/** A service beside a container, whose address the container's platform sets. */
function fromContainer({ environment }: CredentialPlace): CredentialSource | undefined {
  const names = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
  const name = names.find((each) => variable(environment, each) !== undefined);
  if (name === undefined) return undefined;
  // The provider reads this process's variables for a value that isn't given, and for two of a kind it warns on the console.
  const given = (each: string): string => variable(environment, each) ?? "";
  const tokenFile = given("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  return fromService(name, async () => {
    const { fromHttp } = await import("@aws-sdk/credential-provider-http");
    const provide = fromHttp({
      awsContainerCredentialsRelativeUri: name === names[0] ? given(name) : "",
      awsContainerCredentialsFullUri: name === names[1] ? given(name) : "",
      awsContainerAuthorizationToken:
        tokenFile === "" ? given("AWS_CONTAINER_AUTHORIZATION_TOKEN") : "",
      awsContainerAuthorizationTokenFile: tokenFile,
    });
    return await provide();
  });
}

const fromService = (name: string, provide: () => Promise<Identity>): CredentialSource => ({
  name: `the service that ${name} names`,
  profile: undefined,
  provide,
  limitMs: serviceLimitMs,
  hint: `Check ${name}, or unset it and ${usualHint}`,
  renewal: `Check ${name}, or unset it and ${usualHint}`,
});

async function fromMachineRole(
  place: CredentialPlace,
  signal: AbortSignal,
): Promise<CredentialSource | undefined> {
  const provide = await findMachineRole(place.environment, place.profile, signal);
  if (provide === undefined) return undefined;
  const hint = `Nothing was found in the other sources either: ${otherSources(place).join("; ")}. Assign a role to this machine, or ${usualHint}`;
  const name = "this machine's role (instance metadata)";
  return { name, profile: undefined, provide, limitMs: serviceLimitMs, hint, renewal: hint };
}

const credentialSetting =
  /^(?:aws_access_key_id|credential_process|sso_\w+|role_arn|web_identity_token_file|login_session)$/;

/** Whether a profile says where credentials are. If not, the next source counts. If so, and it fails, that must be reported. */
export const namesCredentials = ({ settings }: Pick<Profile, "settings">): boolean =>
  Object.keys(settings).some((setting) => credentialSetting.test(setting));

function fromProfile(place: CredentialPlace): CredentialSource {
  const { profile, requestHandler } = place;
  const hint = profileHint(profile);
  return {
    name: profile.shown,
    profile: profile.name,
    provide: async () => {
      const missing = missingSession(profile);
      if (missing !== undefined) throw new Error(missing);
      if (beginsWithMachine(profile)) return await assumeFromMachine(place);
      const { fromIni } = await import("@aws-sdk/credential-provider-ini");
      const provider = fromIni({
        profile: profile.name,
        ...profile.files,
        ignoreCache: true,
        ...(await profileClients(place)),
      });
      return await provider({
        callerClientConfig: { region: async () => place.region, requestHandler },
      });
    },
    // It may start a program that asks a person.
    limitMs: undefined,
    hint: `Check this profile in ${profile.files.filepath} and ${profile.files.configFilepath}. ${hint}`,
    renewal: hint,
  };
}

/**
 * The clients of a profile's providers. They have no region of their own: sign-on takes place in the region that the profile names for it. The SDK
 * has no way to give its two clients for SSO different endpoints.
 */
async function profileClients(place: CredentialPlace) {
  const { profile, settings, requestHandler } = place;
  const { getDefaultRoleAssumer, getDefaultRoleAssumerWithWebIdentity } =
    await import("@aws-sdk/nested-clients/sts");
  const sts = stsClient(place, profile.settings["region"] ?? place.region);
  const isLogin = sourceSettings(profile).some((each) => each["login_session"] !== undefined);
  const endpoint = settings.endpointOf(isLogin ? "SIGNIN" : "SSO");
  return {
    clientConfig: {
      ...settings.client,
      requestHandler,
      ...(endpoint !== undefined && { endpoint: endpoint.url }),
    },
    roleAssumer: getDefaultRoleAssumer(sts),
    roleAssumerWithWebIdentity: getDefaultRoleAssumerWithWebIdentity(sts),
  };
}

function stsClient({ settings, requestHandler }: CredentialPlace, region: string) {
  const endpoint = settings.endpointOf("STS");
  return {
    ...settings.client,
    region,
    requestHandler,
    ...(endpoint !== undefined && { endpoint: endpoint.url }),
  };
}

const sourceSettings = (profile: Profile): readonly Profile["settings"][] =>
  sourceProfiles(profile).map((name) => profile.sections[name] ?? {});

/** If an SSO session has no section, the SDK's own error doesn't say so. */
function missingSession(profile: Profile): string | undefined {
  for (const name of sourceProfiles(profile)) {
    const session = profile.sections[name]?.["sso_session"];
    if (session !== undefined && profile.sections[`sso-session.${session}`] === undefined)
      return `profile "${name}" needs a section [sso-session ${session}] in ${profile.files.configFilepath}`;
  }
  return undefined;
}

/** Whether the roles of a profile and its sources are assumed with the role of this machine. The SDK tells what is wrong with other combinations. */
function beginsWithMachine(profile: Profile): boolean {
  const all = sourceSettings(profile);
  const [base, ...others] = all.toReversed();
  const isPlainRole = (each: Profile["settings"]): boolean =>
    each["role_arn"] !== undefined && each["credential_source"] === undefined;
  return (
    base?.["credential_source"] === "Ec2InstanceMetadata" &&
    base["source_profile"] === undefined &&
    all[0]?.["role_arn"] !== undefined &&
    others.every(isPlainRole) &&
    !all.some((each) => each["mfa_serial"] !== undefined) &&
    !all.slice(1).some((each) => each["aws_access_key_id"] !== undefined)
  );
}

/** The SDK would ask the metadata service for minutes where packets to it are dropped, and by this process's variables. */
async function assumeFromMachine(place: CredentialPlace): Promise<Identity> {
  const { environment, profile } = place;
  const ofMachine = await findMachineRole(environment, profile, new AbortController().signal);
  if (ofMachine === undefined)
    throw new Error(
      "credential_source is Ec2InstanceMetadata, but no metadata service answers on this machine",
    );
  const { roleAssumer } = await profileClients(place);
  const latest = { identity: await ofMachine() };
  for (const role of sourceSettings(profile).toReversed()) {
    if (role["role_arn"] === undefined) continue;
    latest.identity = await roleAssumer(latest.identity, {
      RoleArn: role["role_arn"],
      RoleSessionName: role["role_session_name"] ?? `cluster-e2e-${Date.now()}`,
      ExternalId: role["external_id"],
      DurationSeconds: Number(role["duration_seconds"] ?? 3600),
    });
  }
  return latest.identity;
}

/** Other sections have a kind before their name. */
const profileNames = ({ sections }: Profile): readonly string[] =>
  Object.keys(sections).filter((name) => !/^(?:sso-session|services)\./.test(name));

/** What helps when a profile gives no credentials, or none any more. It depends on the profile that the others take theirs from. */
function profileHint(profile: Profile): string {
  const base = sourceProfiles(profile).at(-1) ?? profile.name;
  const has = (setting: string): boolean =>
    sourceSettings(profile).some((each) => each[setting] !== undefined);
  if (has("mfa_serial"))
    return `This program cannot ask for the code of mfa_serial. Pass keys that another tool has got with it: unset ${profile.variable ?? "CLOUD_PROFILE"}, and run: eval "$(aws configure export-credentials --profile ${profile.name} --format env)"`;
  if (has("login_session")) return `Renew the session with: aws login --profile ${base}`;
  if (has("sso_session") || has("sso_start_url"))
    return `Renew the SSO session with: aws sso login --profile ${base}`;
  if (has("credential_process"))
    return `Run the credential_process of profile "${base}" by hand to see what it needs.`;
  if (has("web_identity_token_file"))
    return `Check the token in the file that web_identity_token_file names.`;
  if (profile.sections[base] === undefined)
    return `There is no profile "${base}". There are: ${profileNames(profile).join(", ") || "none"}.`;
  return `Put valid keys into profile "${base}".`;
}

/** Credentials are renewed when they have less than this left. */
const renewalMs = 5 * 60_000;

/** Calls the provider again only when its credentials are about to expire, because a `credential_process` may prompt a person. */
export function cachedUntilExpiry(provide: () => Promise<Identity>): () => Promise<Identity> {
  const latest: { identity?: Identity } = {};
  return async () => {
    const expiration = latest.identity?.expiration;
    if (
      latest.identity === undefined ||
      (expiration !== undefined && expiration.getTime() - Date.now() < renewalMs)
    ) {
      latest.identity = checked(await provide());
    }
    return latest.identity;
  };
}

const isPlain = (value: unknown): boolean => typeof value === "string" && /^[!-~]+$/.test(value);

/** A shared file or a program may give anything. What can't be sent would look like a fault of the network. */
function checked(identity: Identity): Identity {
  const { accessKeyId, secretAccessKey, sessionToken } = identity;
  const parts = { "access key": accessKeyId, "secret key": secretAccessKey };
  const all = Object.entries({ ...parts, "session token": sessionToken ?? "none" });
  const [unusable] = all.find(([, value]) => !isPlain(value)) ?? [];
  if (unusable === undefined) return identity;
  throw new OwnError(
    `its ${unusable} has white space, the end of a line or characters beyond ASCII`,
  );
}

/** Gets credentials from the source. Throws `no-credentials` with the source's own message, or the signal's reason. */
export async function resolveCredentials(
  source: CredentialSource,
  provide: () => Promise<Identity>,
  signal: AbortSignal,
): Promise<Identity> {
  try {
    const { limitMs } = source;
    const bounded =
      limitMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    // Providers take no signal.
    return await orAborted(provide(), bounded);
  } catch (error) {
    signal.throwIfAborted();
    const reason = withoutFullStop(outsideLine(messageOf(error)));
    throw new ClusterError(
      "no-credentials",
      `Cannot get credentials from ${source.name}: ${reason}.`,
      {
        hint: source.hint,
        facts: {
          source: source.name,
          ...(source.profile !== undefined && { profile: source.profile }),
        },
        cause: error,
      },
    );
  }
}
