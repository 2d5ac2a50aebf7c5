import { expect, test } from "bun:test";
import { askJson, type Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const { signal } = new AbortController();
const answering = (text: string): Engine => ({ kind: engineKinds.docker, ask: async () => text }) as unknown as Engine;

test("an answer in JSON is parsed", async () => {
  expect(await askJson(answering('[{"a": 1}]'), { words: ["info"] }, signal)).toEqual([{ a: 1 }]);
});

test.each([
  ["Welcome to\n  the wrapper", '"Welcome to the wrapper"'],
  ["null", '"null"'],
  ["x".repeat(200), `"${"x".repeat(100)}"`],
])("another answer, such as %j, is shown in the error", async (text, shown) => {
  expect(await failureOf(askJson(answering(text), { words: ["info"] }, signal))).toMatchObject({
    id: "machine-not-set-up",
    message: `The output of "docker info" is not that of Docker: ${shown}.`,
  });
});
