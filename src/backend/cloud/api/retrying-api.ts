import type { ClusterError } from "../../../errors.ts";
import { messageOf } from "../../../errors.ts";
import { whileWaitingFor } from "../../../system/time-limit.ts";
import { retry } from "../../../system/retry.ts";
import type { Clock, Progress } from "../../../system/runtime.ts";
import { failureCode } from "./api-errors.ts";
import type { CloudApi } from "./api.ts";
import { incompleteAnswer } from "./judge-answer.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

interface RetryRuntime {
  readonly clock: Clock;
  readonly progress: Pick<Progress, "waiting">;
}

/**
 * Returns an API for creations, which a short outage must not end. It retries every request for minutes while the
 * failure is transient, and shows what it waits for. The SDK's own retries last only seconds. Every request that
 * creates something is safe to repeat.
 */
export function retryingApi(api: CloudApi, { clock, progress }: RetryRuntime): CloudApi {
  const outage = { isShown: false };
  const show = (text: string): void => {
    // One line for each outage, no matter how many requests wait for its end.
    if (!outage.isShown) progress.waiting(`waiting for ${text}`);
    outage.isShown = true;
  };
  const showEnd = (): void => {
    if (outage.isShown) progress.waiting("");
    outage.isShown = false;
  };
  return {
    ...api,
    call: async (action, input, signal) => {
      const waiting = { for: `ec2:${action} in region ${api.region}` };
      const onFailure = (error: ClusterError): void => {
        waiting.for = `the cloud's API: ${messageOf(error).replace(/\.$/, "")}`;
        show(waiting.for);
      };
      const tolerates = (error: ClusterError): boolean => error.transient && failureCode(error) !== incompleteAnswer;
      const rule = { ...ruleOf(waits.apiOutage, clock), onFailure, tolerates };
      const ask = async () => retry(async (inner) => api.call(action, input, inner), rule, signal);
      try {
        return await whileWaitingFor(() => waiting.for, ask, signal);
      } finally {
        showEnd();
      }
    },
  };
}
