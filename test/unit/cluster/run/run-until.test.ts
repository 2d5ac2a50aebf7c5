/** What counts as the wanted end of a command. */
import { expect, test } from "bun:test";
import { isWanted, wantedStatus } from "../../../../src/cluster/run/run-until.ts";

test("a session that could not run the command is no failure of the command", () => {
  const wanted = { fails: true, notRun: 255 };
  expect([0, 1, 127, 255].map((status) => isWanted(status, wanted))).toEqual([
    false,
    true,
    true,
    false,
  ]);
  expect([0, 1, 127, 255].map((status) => wantedStatus(status, wanted))).toEqual([1, 0, 0, 255]);
  expect(wantedStatus(255, { fails: true })).toBe(0);
  expect(wantedStatus(3, { fails: false, notRun: 255 })).toBe(3);
});
