import { OwnError } from "../../../errors.ts";
import { TooLong, parseJson, readOwnText } from "../../../system/files/read-text.ts";
import { isLoopback } from "../../../system/network.ts";
import { networkFailure } from "../../../system/network-failure.ts";
import { type Environment, systemClock } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import { requestDirectly } from "../api/request-handler.ts";
import { type Identity, readIdentity } from "./machine-role.ts";

const relativeName = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const fullName = "AWS_CONTAINER_CREDENTIALS_FULL_URI";

/** The variable that names a service beside a container, whose address the container's platform sets. */
export const containerService = (environment: Environment): string | undefined =>
  [relativeName, fullName].find((name) => variable(environment, name) !== undefined);

const usualHost = "http://169.254.170.2";
/** Over plain http, nobody else on the way may see the credentials. */
const hostsBeside: ReadonlySet<string> = new Set([
  "169.254.170.2",
  "169.254.170.23",
  "[fd00:ec2::23]",
]);
const timeoutMs = 5_000;
const tries = 4;
const pauseMs = 1_000;

/**
 * Returns the credentials of a container's role. The SDK's own client isn't used: it reads an
 * answer without an end, quotes what it can't read, and reads this process's variables.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
 */
export async function askContainerService(environment: Environment): Promise<Identity> {
  const url = serviceUrl(environment);
  const headers = await authorization(environment);
  const { signal } = new AbortController();
  for (let tried = 1; ; tried += 1) {
    const request = { url, method: "GET", headers, timeoutMs } as const;
    const answer = await requestDirectly(request, signal).catch((error: unknown) => {
      if (tried < tries && !(error instanceof TooLong)) return undefined;
      const { reason, code } = networkFailure(error);
      throw new OwnError(`${reason} (${code})`);
    });
    const isBusy = answer === undefined || answer.status >= 500 || answer.status === 429;
    if (!isBusy || tried === tries) return readAnswer(answer?.status ?? 0, answer?.text ?? "");
    await systemClock.sleep(pauseMs, signal);
  }
}

function readAnswer(status: number, text: string): Identity {
  if (status !== 200) throw new OwnError(`the service answered with HTTP ${status}`);
  const identity = readIdentity(parseJson(text));
  if (identity !== undefined) return identity;
  throw new OwnError(
    "its answer is not JSON with AccessKeyId, SecretAccessKey, Token and Expiration",
  );
}

function serviceUrl(environment: Environment): URL {
  const relative = variable(environment, relativeName);
  const url = URL.parse(
    relative === undefined ? (variable(environment, fullName) ?? "") : `${usualHost}${relative}`,
  );
  const isBeside = url !== null && (isLoopback(url) || hostsBeside.has(url.hostname));
  if (url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isBeside)))
    return url;
  throw new OwnError(
    "its URL is neither one of https nor of a service on this computer or beside a container",
  );
}

async function authorization(environment: Environment): Promise<Record<string, string>> {
  const file = variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const given =
    file === undefined
      ? variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN")
      : (await readOwnText(file)).trimEnd();
  if (given === undefined) return {};
  if (!/^[ -~]+$/.test(given))
    throw new OwnError("the token for it has characters that no token has");
  return { authorization: given };
}
