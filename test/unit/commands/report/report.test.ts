import { expect, test } from "bun:test";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";

test("a report does not replace the tests' results that it shows", async () => {
  const failure = await failureOf(
    runCommandLine("report --junit-from /tmp/x /tmp/x", {
      kind: vmKind,
      backend: { name: vmKind.name },
      nowMs: 0,
      environment: {},
    }),
  );
  expect(failure.message).toContain("--junit-from: FILE names the same file");
});
