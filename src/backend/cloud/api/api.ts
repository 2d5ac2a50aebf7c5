import type { Action, Calls } from "./calls.ts";

/** The cloud's API in one region, with one set of credentials. */
export interface CloudApi {
  readonly region: string;
  /** Which credentials are used, in words. */
  readonly credentialSource: string;
  /** When the credentials that were found end; absent where they don't, or don't say. */
  readonly credentialsExpireAt?: Date;
  /**
   * Sends one request. Passing faults and throttling are retried within bounds. Throws a ClusterError, whose code failureCode() tells, or
   * the signal's reason as soon as it is aborted; then nobody knows whether the request was carried out.
   */
  call<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
    signal: AbortSignal,
  ): Promise<Calls[Name]["output"]>;
  /** Milliseconds since 1970 by the API's clock, as of its latest answer; this machine's clock may be off. */
  now(): number;
}
