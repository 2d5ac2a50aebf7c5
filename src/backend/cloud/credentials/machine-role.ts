import { ClusterError, quoted } from "../../../errors.ts";
import { parseMoment } from "../../../model/parse-values.ts";
import * as read from "../../../model/reader.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { requestDirectly } from "../api/request-handler.ts";
import type { Profile } from "./profile.ts";

export interface Identity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** The metadata service of a machine in the cloud, which has the credentials of the machine's role. */
interface MetadataService {
  readonly url: URL;
  /** Whether to ask without a token if the service gives none. */
  readonly allowsVersion1: boolean;
}

const endpoints: Readonly<Record<string, string>> = {
  ipv4: "http://169.254.169.254",
  ipv6: "http://[fd00:ec2::254]",
};
const timeoutMs = 1_000;
const rolePath = "/latest/meta-data/iam/security-credentials/";

/**
 * Returns the credentials of this machine's role; undefined if no metadata service answers. The
 * SDK's own client isn't used: it takes minutes where packets to the service are dropped, because
 * it sets no limit on connecting, and it reads this process's variables.
 */
export async function findMachineRole(
  environment: Environment,
  profile: Pick<Profile, "settings">,
  signal: AbortSignal,
): Promise<(() => Promise<Identity>) | undefined> {
  const service = metadataService(environment, profile);
  if (service === undefined || (await askForRole(service, signal)) === undefined) return undefined;
  return async () => {
    // Called again whenever the credentials expire. Each request has a limit of its own.
    const { signal: unlimited } = new AbortController();
    const found = await askForRole(service, unlimited);
    if (found === undefined) throw new Error("the metadata service does not answer any more");
    if (found.answer.status === 401 && found.token === undefined) throw new Error(noToken);
    const [role = ""] = found.answer.text.trim().split("\n");
    if (found.answer.status !== 200 || role === "") throw new Error("the machine has no role");
    const { status, text } = await get(
      service,
      `${rolePath}${encodeURIComponent(role)}`,
      found.token,
      unlimited,
    );
    const identity = status === 200 ? readIdentity(parseJson(text)) : undefined;
    if (identity !== undefined) return identity;
    throw new Error(
      `the metadata service has no credentials for the role ${quoted(role)} (HTTP ${status})`,
    );
  };
}

const noToken =
  "the metadata service requires a token, but gave none. Inside a container this works only if the machine's hop limit for metadata is 2 or more";

function metadataService(
  environment: Environment,
  { settings }: Pick<Profile, "settings">,
): MetadataService | undefined {
  const find = (name: string): string | undefined =>
    variable(environment, `AWS_${name.toUpperCase()}`) ?? settings[name];
  if ((variable(environment, "AWS_EC2_METADATA_DISABLED") ?? "false").toLowerCase() !== "false")
    return undefined;
  const mode = find("ec2_metadata_service_endpoint_mode") ?? "IPv4";
  const url = find("ec2_metadata_service_endpoint") ?? endpoints[mode.toLowerCase()];
  if (url === undefined || !URL.canParse(url))
    throw new ClusterError(
      "machine-not-set-up",
      `The address of the metadata service is wrong: ${quoted(url ?? mode)}.`,
      {
        hint: "Set AWS_EC2_METADATA_SERVICE_ENDPOINT to a URL, and AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE to IPv4 or IPv6, or unset them.",
      },
    );
  const allowsVersion1 = (find("ec2_metadata_v1_disabled") ?? "false").toLowerCase() === "false";
  return { url: new URL(url), allowsVersion1 };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * Undefined if there is no service that knows roles. Other clouds have a service at this address
 * too, but it knows neither tokens nor roles.
 */
async function askForRole(service: MetadataService, signal: AbortSignal) {
  try {
    const token = await askForToken(service, signal);
    if (token === undefined && !service.allowsVersion1) return undefined;
    const answer = await get(service, rolePath, token, signal);
    // Without a token, a role is the only proof that this is the cloud's own service.
    return token !== undefined || [200, 401].includes(answer.status)
      ? { token, answer }
      : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/**
 * Undefined if the service gives none. Its answer gets lost on the way to a container, because it
 * may make one hop only.
 */
async function askForToken(
  { url }: MetadataService,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = { "x-aws-ec2-metadata-token-ttl-seconds": "21600" };
  const request = {
    url: new URL("/latest/api/token", url),
    method: "PUT",
    headers,
    timeoutMs,
  } as const;
  try {
    const { status, text } = await requestDirectly(request, signal);
    return status === 200 ? text : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DOMException && error.name === "TimeoutError") return undefined;
    throw error;
  }
}

async function get(
  { url }: MetadataService,
  path: string,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  const headers: Record<string, string> =
    token === undefined ? {} : { "x-aws-ec2-metadata-token": token };
  return await requestDirectly(
    { url: new URL(path, url), method: "GET", headers, timeoutMs },
    signal,
  );
}

export const readIdentity: read.Reader<Identity> = (found) => {
  const keys = readKeys(found);
  if (keys === undefined) return undefined;
  const {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: sessionToken,
    Expiration,
  } = keys;
  return { accessKeyId, secretAccessKey, sessionToken, expiration: Expiration };
};

const readKeys = read.object({
  AccessKeyId: read.string,
  SecretAccessKey: read.string,
  Token: read.string,
  Expiration: parseMoment,
});
