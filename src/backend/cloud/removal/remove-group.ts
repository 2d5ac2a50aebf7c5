import type { Clock } from "../../../system/clock.ts";
import { failureCode } from "../api/api-errors.ts";
import type { CloudApi } from "../api/api.ts";

const pauseMs = 2_000;

/** Deletes a security group. A missing group counts as deleted; a group that ending machines still use is retried within the limit. */
export async function removeGroup(
  api: CloudApi,
  groupId: string,
  patience: { readonly clock: Clock; readonly limitMs: number },
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = patience.clock.now() + patience.limitMs;
  for (;;) {
    try {
      await api.call("DeleteSecurityGroup", { GroupId: groupId }, signal);
      return;
    } catch (error) {
      const code = failureCode(error) ?? "";
      if (code.startsWith("InvalidGroup") && code.endsWith("NotFound")) return;
      if (code !== "DependencyViolation" || patience.clock.now() + pauseMs > deadlineMs) throw error;
      await patience.clock.sleep(pauseMs, signal);
    }
  }
}
