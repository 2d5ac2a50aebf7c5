import type { Environment } from "../../../system/environment.ts";
import { requestDirectly } from "../api/request-directly.ts";

const defaultEndpoint = "http://169.254.169.254";
const timeoutMs = 800;

/**
 * Checks whether this machine is one of the cloud's own and has a metadata service. This runs before the SDK's own chain uses that address: the chain
 * sets no limit on connecting, so it takes minutes where packets to the address are dropped.
 */
export async function hasMetadataService(environment: Environment, signal: AbortSignal): Promise<boolean> {
  if (!["", "false"].includes(environment["AWS_EC2_METADATA_DISABLED"] ?? "")) return false;
  try {
    const url = new URL("/latest/api/token", environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] ?? defaultEndpoint);
    const headers = { "x-aws-ec2-metadata-token-ttl-seconds": "60" };
    // Other clouds have a service at this address too, but it doesn't know such tokens.
    return (await requestDirectly({ url, method: "PUT", headers, timeoutMs }, signal)).status === 200;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
