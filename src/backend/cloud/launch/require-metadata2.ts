import { ClusterError, messageOf } from "../../../errors.ts";
import type { Progress } from "../../../system/runtime.ts";
import type { CloudApi } from "../api/api.ts";
import type { LaunchImage } from "./images.ts";

/** Closes version 1 of a machine's instance metadata once nothing on the machine needs it any more. */
export type RequireMetadata2 = (machineId: string, name: string, signal: AbortSignal) => Promise<void>;

/**
 * For the machines of one creation. Warns only once about a missing permission. Sends no request for machines that were
 * launched with version 2 alone.
 */
export function metadata2Requirer(
  api: CloudApi,
  image: Pick<LaunchImage, "knowsMetadata2">,
  progress: Pick<Progress, "warn" | "detail">,
): RequireMetadata2 {
  const state = { isForbidden: false };
  return async (machineId, name, signal) => {
    if (image.knowsMetadata2 || state.isForbidden) return;
    try {
      const request = { InstanceId: machineId, HttpTokens: "required", HttpPutResponseHopLimit: 1 } as const;
      await api.call("ModifyInstanceMetadataOptions", request, signal);
      progress.detail(1, `${name}: instance metadata now requires version 2`);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (!state.isForbidden) progress.warn(warning(error));
      state.isForbidden = true;
    }
  };
}

const isRefusal = (error: unknown): error is ClusterError =>
  error instanceof ClusterError && error.id === "not-permitted";

const warning = (error: ClusterError): string =>
  `Version 1 of the instance metadata stays open on these machines, so any program on them can read the metadata: ${messageOf(error)} Allow ec2:ModifyInstanceMetadataOptions, or choose a distribution whose images work without version 1.`;

/** Describes, for people, what a creation does with the metadata of machines from this image. */
export const metadataText = (image: Pick<LaunchImage, "knowsMetadata2">): string =>
  image.knowsMetadata2
    ? "version 2 only"
    : "version 2 only, after the first login: the image may need version 1 to find its user data";
