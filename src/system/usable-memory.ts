import { totalmem } from "node:os";

export interface UsableMemory {
  readonly bytes: number;
  /** What has no more of it, for messages. */
  readonly owner: "this computer" | "this program's control group";
}

/**
 * The memory that this program and those that it starts may use together: a container or a service
 * may have less than the computer.
 */
export function usableMemory(
  computerBytes = totalmem(),
  limitBytes: number | undefined = process.constrainedMemory(),
): UsableMemory {
  // Nobody limits it if there is no number, or any that the computer doesn't have.
  return limitBytes !== undefined && limitBytes > 0 && limitBytes < computerBytes
    ? { bytes: limitBytes, owner: "this program's control group" }
    : { bytes: computerBytes, owner: "this computer" };
}
