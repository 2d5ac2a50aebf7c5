import { expect, test } from "bun:test";
import {
  isColoured,
  isLive,
  noColours,
  terminalColours,
} from "../../../../src/cli/terminal/colours.ts";

test.each([
  [{}, true, true],
  [{ TERM: "xterm", CI: "", NO_COLOR: "" }, true, true],
  [{ CI: "false" }, true, true],
  [{ CI: "0" }, true, true],
  [{ CI: "true" }, false, false],
  [{ CI: "1" }, false, false],
  [{ TERM: "dumb" }, false, false],
  [{ NO_COLOR: "0" }, true, false],
])(
  "with the variables %j, lines are redrawn: %p, and have colours: %p",
  (environment, live, coloured) => {
    expect([isLive(environment), isColoured(environment)]).toEqual([live, coloured]);
  },
);

test("colours are written, wherever stdout leads to, and may be nested", () => {
  const { bold, red } = terminalColours;
  expect([bold(red("x")), noColours.red("x")]).toEqual([
    "\u001B[1m\u001B[31mx\u001B[39m\u001B[22m",
    "x",
  ]);
});
