import type { Action, Calls } from "./calls.ts";

/** The cloud's API in one region, with one set of credentials. */
export interface CloudApi {
  readonly region: string;
  /** Describes, in words, which credentials are used. */
  readonly credentialSource: string;
  /** When the credentials expire; absent if they don't, or if that is unknown. */
  readonly credentialsExpireAt?: Date;
  /**
   * Sends one request, and retries transient faults and throttling a limited number of times. Throws a ClusterError (failureCode() returns its code),
   * or the signal's reason as soon as it is aborted. After an abort, nobody knows whether the request was carried out.
   */
  call<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
    signal: AbortSignal,
  ): Promise<Calls[Name]["output"]>;
  /** Returns the milliseconds since 1970 by the API's clock, as of its latest answer, because this machine's clock may be wrong. */
  now(): number;
}
