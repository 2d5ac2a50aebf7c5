import { expect, test } from "bun:test";
import type { ProcessLike } from "../../../src/cli/process-like.ts";
import { Terminal } from "../../../src/cli/terminal.ts";

test.each([
  [0, 0, [80, 24]],
  [undefined, undefined, [80, 24]],
  [60, 10, [60, 10]],
])("a terminal that says %p columns and %p rows is taken for %p", (columns, rows, taken) => {
  const { screen } = new Terminal({ stderr: { columns, rows } } as unknown as ProcessLike);
  expect([screen.columns, screen.rows]).toEqual(taken);
});
