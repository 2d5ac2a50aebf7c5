import { isIPv4, isIPv6 } from "node:net";
import { ClusterError } from "../../../errors.ts";
import type { Environment } from "../../../system/runtime.ts";
import { networkFailure } from "../../../system/network-failure.ts";
import { requestDirectly } from "../api/request-directly.ts";

const defaultUrl = "https://checkip.amazonaws.com";
const timeoutMs = 10_000;

/**
 * Returns the address from which this machine is seen. Throws `machine-not-set-up`, which names the option that makes
 * this check unnecessary.
 */
export async function checkAddress(environment: Environment, signal: AbortSignal): Promise<string> {
  const url = environment["CLUSTER_CHECK_ADDRESS_URL"] ?? defaultUrl;
  try {
    const answer = await requestDirectly({ url: new URL(url), method: "GET", headers: {}, timeoutMs }, signal);
    const address = answer.text.trim();
    if (answer.status === 200 && (isIPv4(address) || isIPv6(address))) return address;
    throw addressUnknown(url, `it answered with status ${answer.status} and without an address`, undefined);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    const { reason, code } = networkFailure(error);
    throw addressUnknown(url, `${reason} (${code})`, error);
  }
}

function addressUnknown(url: string, reason: string, cause: unknown): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `Cannot find out this machine's public address from ${url}: ${reason}.`,
    {
      hint: "Pass the addresses that may reach the cluster with `adminCidrs`.",
      facts: { url },
      cause,
    },
  );
}
