import { expect, test } from "bun:test";
import { withGrace } from "../../../../src/backend/cloud/cloud-creation.ts";
import { until } from "../../../support/until.ts";

test.each([
  ["before", true],
  ["after", false],
])(
  "a request that is interrupted %s it starts ends after its grace period, for the same reason",
  async (_, isEarly) => {
    const interrupt = new AbortController();
    if (isEarly) interrupt.abort("Ctrl-C");
    using grace = withGrace(interrupt.signal, 10);
    if (!isEarly) interrupt.abort("Ctrl-C");
    expect(grace.signal.aborted).toBe(false);
    await until("the end of the grace period", () => grace.signal.aborted);
    expect(grace.signal.reason).toBe("Ctrl-C");
  },
);
