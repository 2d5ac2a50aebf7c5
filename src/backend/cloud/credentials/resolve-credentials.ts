import { ClusterError, messageOf } from "../../../errors.ts";
import { orAborted } from "../../../system/or-aborted.ts";
import { outsideLine, withoutFullStop } from "../../../system/printable.ts";
import type { CredentialSource, Identity } from "./credentials.ts";

/** Credentials are renewed when they have less than this left. */
const renewalMs = 5 * 60_000;

/** Wraps a provider so that it is called again only when its credentials are about to expire: a `credential_process` may prompt a person. */
export function kept(provide: () => Promise<Identity>): () => Promise<Identity> {
  const latest: { identity?: Identity } = {};
  return async () => {
    const expiration = latest.identity?.expiration;
    if (latest.identity === undefined || (expiration !== undefined && expiration.getTime() - Date.now() < renewalMs)) {
      latest.identity = await provide();
    }
    return latest.identity;
  };
}

/** For the SDK's own chain, which sets no limit itself. A profile has no limit because it may prompt a person, who can interrupt. */
const chainLimitMs = 30_000;

/** Gets credentials from the source. Throws `no-credentials` with the source's own message, or the signal's reason. */
export async function resolveCredentials(
  source: CredentialSource,
  provide: () => Promise<Identity>,
  signal: AbortSignal,
): Promise<Identity> {
  try {
    const isChain = source.provide === undefined;
    const bounded = isChain ? AbortSignal.any([signal, AbortSignal.timeout(chainLimitMs)]) : signal;
    // Providers take no signal.
    return await orAborted(provide(), bounded);
  } catch (error) {
    signal.throwIfAborted();
    const reason = withoutFullStop(outsideLine(messageOf(error)));
    throw new ClusterError("no-credentials", `Cannot get credentials from ${source.name}: ${reason}.`, {
      hint: source.hint,
      facts: { source: source.name, ...(source.profile !== undefined && { profile: source.profile }) },
      cause: error,
    });
  }
}
