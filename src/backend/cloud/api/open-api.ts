import type { $Command, EC2ClientResolvedConfig } from "@aws-sdk/client-ec2";
import { type ClusterError, messageOf } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { retry } from "../../../system/retry.ts";
import {
  type Clock,
  type Progress,
  type Runtime,
  type Work,
  passedMs,
} from "../../../system/runtime.ts";
import { orAborted, slowNote, whileWaitingFor } from "../../../system/time-limit.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import type { CredentialSource } from "../credentials/credential-source.ts";
import {
  cachedUntilExpiry,
  findCredentials,
  resolveCredentials,
} from "../credentials/credentials.ts";
import type { Identity } from "../credentials/machine-role.ts";
import { proxyOf } from "../../../system/proxy.ts";
import { readProfile } from "../credentials/profile.ts";
import { type Endpoint, readSettings } from "../credentials/settings.ts";
import { callFailure, encodedMessage, failureCode } from "./api-errors.ts";
import type { Action, Calls, CloudApi } from "./api.ts";
import {
  boundedFetch,
  incompleteAnswer,
  judgeAnswers,
  judgeResponse,
  readIssued,
} from "./request-handler.ts";

/** The number of attempts for one request, including the first. */
const attempts = 8;

/** Opens the API of any region with one set of credentials. */
export type OpenRegion = (region: string) => CloudApi;

/**
 * Finds and obtains credentials. Sends nothing to the API itself; `region` is the region of the
 * services that issue credentials. Throws `no-credentials`.
 */
export async function openApi(work: Work, region: string): Promise<OpenRegion> {
  const { EC2Client, FetchHttpHandler, commands } = await import("./commands.ts");
  const { environment, clock, progress } = work;
  const profile = await readProfile(environment);
  const settings = await readSettings(environment, profile);
  const endpoint = settings.endpointOf("EC2");
  const offset = { ms: 0 };
  const judge = async (response: Response): Promise<Response> => {
    const judged = await judgeResponse(response);
    offset.ms = aheadOf(clock, judged) ?? offset.ms;
    return judged;
  };
  const isDirect = (url: URL): boolean => proxyOf(url, environment) === undefined;
  const handle = (each: typeof judge) =>
    new FetchHttpHandler({ customFetch: boundedFetch(settings.authorities, each, isDirect) });
  // The services that issue credentials answer in forms of their own.
  const inner = handle(readIssued);
  const request = { environment, profile, settings, region, requestHandler: inner };
  const source = await findCredentials(request, work.signal);
  const provide = cachedUntilExpiry(async () => {
    const found = await source.provide();
    progress.hide(found.secretAccessKey);
    if (found.sessionToken !== undefined) progress.hide(found.sessionToken);
    return found;
  });
  const resolve = async () => resolveCredentials(source, provide, work.signal);
  const identity = await firstIdentity(source, resolve, progress, work.signal);
  progress.detail(1, `Credentials from ${source.name}`);
  const configuration = {
    retryMode: "adaptive",
    maxAttempts: attempts,
    ...settings.client,
    ...(endpoint && { endpoint: endpoint.url }),
    requestHandler: handle(judge),
    credentials: provide,
  };
  return (chosen) => {
    const client = new EC2Client({ ...configuration, region: chosen });
    judgeAnswers(client);
    return {
      region: chosen,
      credentialSource: source.name,
      credentialsExpireAt: identity.expiration,
      now: () => clock.now() + offset.ms,
      call: async (action, input, callSignal) => {
        // The compiler doesn't see that the table has the command of this action.
        const Command = commands[action] as unknown as CommandOf<typeof action>;
        return await sendLogged(
          { action, region: chosen, source, endpoint, offset, runtime: work },
          callSignal,
          async () => client.send(new Command(input), { abortSignal: callSignal }),
        );
      },
    };
  };
}

/** How far the clock of the answering server is ahead of this machine's. */
function aheadOf(clock: Clock, { headers }: Response): number | undefined {
  const date = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(date) ? undefined : date - clock.now();
}

/** A profile may start a program that asks a person, so it has no time limit. */
async function firstIdentity(
  { name }: CredentialSource,
  resolve: () => Promise<Identity>,
  progress: Progress,
  signal: AbortSignal,
): Promise<Identity> {
  using _slow = slowNote(() => progress.note(`Waiting for credentials from ${name}.`));
  return await whileWaitingFor(() => `credentials from ${name}`, resolve, signal);
}

type CommandOf<Name extends Action> = new (
  input: Calls[Name]["input"],
) => $Command<Calls[Name]["input"], Calls[Name]["output"], EC2ClientResolvedConfig>;

interface LoggedCall {
  readonly action: Action;
  readonly region: string;
  readonly source: CredentialSource;
  readonly endpoint: Endpoint | undefined;
  readonly offset: { readonly ms: number };
  readonly runtime: Runtime;
}

/** Sends a request, logs its outcome, and turns a failure into a ClusterError. */
async function sendLogged<
  Answer extends { readonly $metadata: { readonly requestId?: string | undefined } },
>(
  { action, region, source, endpoint, offset, runtime }: LoggedCall,
  signal: AbortSignal,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const { clock, progress } = runtime;
  const startedMs = passedMs(clock);
  using _slow = slowNote(() =>
    progress.note(`Waiting for ec2:${action} in ${region}: the API is slow to answer.`),
  );
  const logOutcome = (outcome: string): void =>
    progress.detail(
      2,
      `ec2:${action} in ${region} ${outcome} after ${passedMs(clock) - startedMs} ms`,
    );
  try {
    const what = (): string => `ec2:${action} in region ${region}`;
    const answer = await whileWaitingFor(what, async () => orAborted(send(), signal), signal);
    logOutcome(`answered (${requestText(answer.$metadata.requestId)})`);
    return answer;
  } catch (error) {
    if (signal.aborted) {
      logOutcome("was cancelled");
      throw error;
    }
    const url = new URL(endpoint?.url ?? `https://ec2.${region}.amazonaws.com`);
    const context = {
      action,
      region,
      endpoint: endpoint?.shown,
      proxy: proxyOf(url, runtime.environment),
      credentialSource: source.name,
      renewal: source.renewal,
    };
    const failure = callFailure(error, { ...context, clockOffSeconds: offset.ms / 1000 });
    logOutcome(
      `failed (${outside(String(failure.facts["code"]))}, ${requestText(failure.facts["requestId"])})`,
    );
    const encoded = encodedMessage(error);
    if (encoded !== undefined)
      progress.detail(1, `Encoded authorization message: ${outside(encoded)}`);
    throw failure;
  }
}

/** A request that got no answer has no id. */
const requestText = (id: unknown): string =>
  typeof id === "string" ? `request ${id}` : "request without an id";

/**
 * Returns an API for creations, which a short outage must not end. It retries every request for minutes while the
 * failure is transient, and shows what it waits for. The SDK's own retries last only seconds. Every request that
 * creates something is safe to repeat.
 */
export function retryingApi(
  api: CloudApi,
  { clock, progress }: Pick<Runtime, "clock"> & { readonly progress: Pick<Progress, "waiting"> },
): CloudApi {
  const outage = { isShown: false };
  const show = (text: string): void => {
    // One line for each outage, no matter how many requests wait for its end.
    if (!outage.isShown) progress.waiting(`waiting for ${text}`);
    outage.isShown = true;
  };
  return {
    ...api,
    call: async (action, input, signal) => {
      const waiting = { for: `ec2:${action} in region ${api.region}` };
      const onFailure = (error: ClusterError): void => {
        waiting.for = `the cloud's API: ${messageOf(error).replace(/\.$/, "")}`;
        show(waiting.for);
      };
      const tolerates = (error: ClusterError): boolean =>
        error.transient && failureCode(error) !== incompleteAnswer;
      const rule = { ...ruleOf(waits.apiOutage, clock), onFailure, tolerates };
      const ask = async () => retry(async (inner) => api.call(action, input, inner), rule, signal);
      try {
        return await whileWaitingFor(() => waiting.for, ask, signal);
      } finally {
        if (outage.isShown) progress.waiting("");
        outage.isShown = false;
      }
    },
  };
}
