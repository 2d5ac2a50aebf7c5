export interface LoggedRequest {
  /** RFC 3339, in this machine's time. */
  readonly time: string;
  readonly action: string;
  readonly region: string;
  readonly requestId: string;
  /** `ok`, `lost`, or the error's code; `unanswered` while it is still being worked on. */
  readonly outcome: string;
  readonly durationMs: number | undefined;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Every API call that came in, oldest first, from the moment it came in. */
export class RequestLog {
  #entries: LoggedRequest[] = [];

  /** Logs a call that has come in; the function returned logs what became of it. */
  begin(call: Pick<LoggedRequest, "action" | "region" | "requestId" | "parameters">): (outcome: string) => void {
    const startMs = performance.now();
    const entry = { ...call, time: new Date().toISOString(), outcome: "unanswered", durationMs: undefined };
    this.#entries.push(entry);
    return (outcome) => {
      Object.assign(entry, { outcome, durationMs: Math.round(performance.now() - startMs) });
    };
  }

  get entries(): readonly LoggedRequest[] {
    return this.#entries;
  }

  /** How many calls of each action came in: `{ DescribeInstances: 3 }`. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { action } of this.#entries) counts[action] = (counts[action] ?? 0) + 1;
    return counts;
  }

  clear(): void {
    this.#entries = [];
  }
}

/** The region that a request's signature names, good or not. */
export function claimedRegion(headers: Headers): string {
  return /Credential=[^/,]+\/\d+\/([^/]+)\//.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/** The parameters as they are logged: user data holds a private key and is long, so only its length stands there. */
export function loggedParameters(fields: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, name === "UserData" ? `(${value.length} characters)` : value]),
  );
}
