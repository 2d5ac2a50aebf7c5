import { expect, test } from "bun:test";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";

test.each([
  ["list agent_0", "NODE: list takes no nodes"],
  ["list --for 0s", "--for: "],
  ["partition", "--between"],
  ["partition --between agent_0 --for 8d", "--for: "],
  ["network agent_0", "--delay"],
])("fault %s is refused", async (words, problem) => {
  const running = runCommandLine(`fault ${words}`, { kind: containerKind, backend: {}, nowMs: 0 });
  const failure = await failureOf(running);
  expect(failure).toMatchObject({ id: "bad-usage", message: expect.stringContaining(problem) });
});
