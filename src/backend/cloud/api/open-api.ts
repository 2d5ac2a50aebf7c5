import type { Environment } from "../../../system/environment.ts";
import type { Progress } from "../../../system/progress.ts";
import type { Surroundings } from "../../../system/surroundings.ts";
import type { CloudApi } from "./api.ts";
import { callFailure, encodedMessage } from "./api-errors.ts";
import type { Action } from "./calls.ts";
import { type CredentialSource, findCredentials, type Identity } from "../credentials/credentials.ts";
import { boundedFetch, certificateAuthorities, requestTimeoutMs } from "./request-handler.ts";
import { kept, orAborted, resolveCredentials } from "../credentials/resolve-credentials.ts";

/** The number of attempts for one request, including the first. */
const attempts = 8;

/** Opens the API of any region with one set of credentials. */
export type OpenRegion = (region: string) => CloudApi;

/**
 * Finds credentials and makes sure that they can be obtained. Sends nothing to the API itself yet; `region` is the region of the services that issue
 * credentials. Throws `no-credentials`.
 */
export async function openApi(region: string, surroundings: Surroundings, signal: AbortSignal): Promise<OpenRegion> {
  const { EC2Client, FetchHttpHandler, senders } = await import("./senders.ts");
  const { environment, clock, progress } = surroundings;
  const offset = { ms: 0 };
  const customFetch = boundedFetch(await certificateAuthorities(environment), (response) => {
    const date = Date.parse(response.headers.get("date") ?? "");
    if (!Number.isNaN(date)) offset.ms = date - clock.now();
  });
  const requestHandler = new FetchHttpHandler({ requestTimeout: requestTimeoutMs, customFetch });
  const source = await findCredentials(environment, { region, requestHandler }, signal);
  const configuration = { requestHandler, retryMode: "adaptive", maxAttempts: attempts, ...endpointOf(environment) };
  const provide = kept(source.provide ?? new EC2Client({ ...configuration, region }).config.credentials);
  const identity = await resolveCredentials(source, provide, signal);
  hide(identity, progress);
  progress.detail(1, `Credentials from ${source.name}`);
  return (chosen) => {
    const client = new EC2Client({ ...configuration, region: chosen, credentials: provide });
    return {
      region: chosen,
      credentialSource: source.name,
      ...(identity.expiration !== undefined && { credentialsExpireAt: identity.expiration }),
      now: () => clock.now() + offset.ms,
      call: async (action, input, callSignal) =>
        await told({ action, region: chosen, source, offset, surroundings }, callSignal, async () =>
          senders[action](client, input, { abortSignal: callSignal }),
        ),
    };
  };
}

interface ToldCall {
  readonly action: Action;
  readonly region: string;
  readonly source: CredentialSource;
  readonly offset: { readonly ms: number };
  readonly surroundings: Surroundings;
}

/** Sends a request, logs its outcome, and turns a failure into a ClusterError. */
async function told<Answer extends { readonly $metadata: { readonly requestId?: string | undefined } }>(
  { action, region, source, offset, surroundings }: ToldCall,
  signal: AbortSignal,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const { clock, progress } = surroundings;
  const startedMs = clock.now();
  using _slow = slowNote(() => progress.note(`Waiting for ec2:${action} in ${region}: the API is slow to answer.`));
  const tell = (outcome: string): void =>
    progress.detail(2, `ec2:${action} in ${region} ${outcome} after ${clock.now() - startedMs} ms`);
  try {
    const answer = await orAborted(send(), signal);
    tell(`answered (request ${answer.$metadata.requestId ?? "without an id"})`);
    return answer;
  } catch (error) {
    if (signal.aborted) tell("given up");
    signal.throwIfAborted();
    const { endpoint } = endpointOf(surroundings.environment);
    const context = { action, region, endpoint, credentialSource: source.name, profile: source.profile };
    const failure = callFailure(error, { ...context, clockOffSeconds: offset.ms / 1000 });
    tell(`failed (${String(failure.facts["code"])}, request ${String(failure.facts["requestId"])})`);
    const encoded = encodedMessage(error);
    if (encoded !== undefined) progress.detail(1, `Encoded authorization message: ${encoded}`);
    throw failure;
  }
}

/** After this time, progress shows what the program is waiting for. Most calls take a tenth of it. */
const slowAfterMs = 5_000;

function slowNote(tell: () => void): Disposable {
  const timer = setTimeout(tell, slowAfterMs);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Read here and not by the SDK, so that the environment passed in is the one that counts. */
function endpointOf(environment: Environment): { readonly endpoint?: string } {
  const endpoint = environment["AWS_ENDPOINT_URL_EC2"] ?? environment["AWS_ENDPOINT_URL"] ?? "";
  return endpoint === "" ? {} : { endpoint };
}

function hide(identity: Identity, progress: Progress): void {
  progress.hide(identity.secretAccessKey);
  if (identity.sessionToken !== undefined) progress.hide(identity.sessionToken);
}
