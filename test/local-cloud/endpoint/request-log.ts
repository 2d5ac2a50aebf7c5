export interface LoggedRequest {
  /** RFC 3339, in this machine's time. */
  readonly time: string;
  readonly action: string;
  readonly region: string;
  readonly requestId: string;
  /** `ok`, `lost`, or the error code. `unanswered` while it is being processed. */
  readonly outcome: string;
  readonly durationMs: number | undefined;
  readonly parameters: Readonly<Record<string, string>>;
}

/** All API calls received, oldest first, including those still in progress. */
export class RequestLog {
  #entries: LoggedRequest[] = [];

  /** Logs a received call. Call the returned function with its outcome. */
  begin(
    call: Pick<LoggedRequest, "action" | "region" | "requestId" | "parameters">,
  ): (outcome: string) => void {
    const startMs = performance.now();
    const entry = {
      ...call,
      time: new Date().toISOString(),
      outcome: "unanswered",
      durationMs: undefined,
    };
    this.#entries.push(entry);
    return (outcome) => {
      Object.assign(entry, { outcome, durationMs: Math.round(performance.now() - startMs) });
    };
  }

  get entries(): readonly LoggedRequest[] {
    return this.#entries;
  }

  /** The number of calls of each action: `{ DescribeInstances: 3 }`. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { action } of this.#entries) counts[action] = (counts[action] ?? 0) + 1;
    return counts;
  }

  clear(): void {
    this.#entries = [];
  }
}

/** The region in a request's signature, which may be invalid. */
export function claimedRegion(headers: Headers): string {
  return /Credential=[^/,]+\/\d+\/([^/]+)\//.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/** Returns the parameters for the log, which contains only the length of user data: it is long and contains a private key. */
export function loggedParameters(
  fields: ReadonlyMap<string, string>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [
      name,
      name === "UserData" ? `(${value.length} characters)` : value,
    ]),
  );
}
