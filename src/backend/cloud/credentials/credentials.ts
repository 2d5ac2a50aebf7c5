import { ClusterError, OwnError, messageOf } from "../../../errors.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { outsideLine, withoutFullStop } from "../../../system/printable.ts";
import type { Environment } from "../../../system/runtime.ts";
import { orAborted } from "../../../system/time-limit.ts";
import { variable } from "../../../system/variable.ts";
import { askContainerService, containerService } from "./container-role.ts";
import { type Identity, findMachineRole } from "./machine-role.ts";
import { type CredentialPlace, type CredentialSource, stsClient } from "./credential-source.ts";
import { namesCredentials } from "./profile.ts";
import { fromProfile } from "./from-profile.ts";

type Find = (
  place: CredentialPlace,
  signal: AbortSignal,
) => CredentialSource | undefined | Promise<CredentialSource | undefined>;

/**
 * In order of precedence. Each has one provider of its own: the SDK's chain would choose again, by
 * rules of its own.
 */
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

function fromContainer({ environment }: CredentialPlace): CredentialSource | undefined {
  const name = containerService(environment);
  return name === undefined
    ? undefined
    : fromService(name, async () => askContainerService(environment));
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
  const hint = `Nothing was found in the other sources either: ${otherSources(place).join("; ")}. Assign a role to this computer, or ${usualHint}`;
  const name = "this computer's role (instance metadata)";
  return { name, profile: undefined, provide, limitMs: serviceLimitMs, hint, renewal: hint };
}

/** Credentials are renewed when they have less than this left. */
const renewalMs = 5 * 60_000;
/**
 * How long those serve that seem to have expired, because this computer's clock may be wrong, and
 * those that could not be renewed.
 */
const nextTryMs = 60_000;

/**
 * Calls the provider again only when its credentials are about to expire, and once for all requests
 * that need them, because a `credential_process` may prompt a person. Credentials that are issued
 * with little time left serve for half of it. If they can't be renewed, those that have not expired
 * serve on, because the source may fail for a moment only.
 */
export function cachedUntilExpiry(
  provide: () => Promise<Identity>,
  now: () => number = Date.now,
): () => Promise<Identity> {
  const latest: { renewAtMs: number; identity?: Promise<Identity>; valid?: Identity } = {
    renewAtMs: -Infinity,
  };
  const renew = async (): Promise<Identity> => {
    try {
      const identity = checked(await provide());
      const leftMs = (identity.expiration?.getTime() ?? Infinity) - now();
      const pauseMs = leftMs > 0 ? Math.max(leftMs - renewalMs, leftMs / 2) : nextTryMs;
      latest.renewAtMs = now() + pauseMs;
      latest.valid = identity;
      return identity;
    } catch (error) {
      const { valid } = latest;
      const endMs = valid?.expiration?.getTime() ?? -Infinity;
      latest.renewAtMs = endMs > now() ? Math.min(endMs, now() + nextTryMs) : -Infinity;
      if (valid !== undefined && endMs > now()) return valid;
      throw error;
    }
  };
  return async () => {
    if (latest.identity === undefined || now() >= latest.renewAtMs) {
      latest.renewAtMs = Infinity;
      latest.identity = renew();
    }
    return await latest.identity;
  };
}

const isPlain = (value: unknown): boolean => typeof value === "string" && /^[!-~]+$/.test(value);

/** A shared file or a program may give anything. What can't be sent would look like a fault of the network. */
function checked(identity: Identity): Identity {
  const { sessionToken, ...keys } = identity;
  // Some services give an empty one for keys that need none.
  if (sessionToken === "") return checked(keys);
  const { accessKeyId, secretAccessKey } = keys;
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
          profile: source.profile,
        },
        cause: error,
      },
    );
  }
}
