import { expect, test } from "bun:test";
import { answers } from "../../../../src/cli/terminal.ts";
import { failureOf } from "../../../support/failure-of.ts";

test("a question that names something from outside is one printable line", async () => {
  const asked: string[] = [];
  const { confirm } = answers({
    isTerminal: true,
    environment: {},
    ask: (prompt) => asked.push(prompt),
    hide: () => {},
    onAbandon: () => ({ [Symbol.dispose]: () => {} }),
  });
  await failureOf(
    confirm("Remove the cluster: a\x1b[2J\nNothing to remove\u202E?", AbortSignal.abort(new Error("over"))),
  );
  expect(asked).toEqual(["Remove the cluster: a\uFFFD[2J Nothing to remove\uFFFD? [y/N] "]);
});
