/** What counts as the wanted end of a command. */
import { expect, test } from "bun:test";
import { isWanted, wantedStatus } from "../../../../src/cluster/run/run-until.ts";

test("a session or a shell that could not run the command is no failure of the command", () => {
  const wanted = { fails: true, isRemote: true };
  const statuses = [0, 1, 126, 127, 255];
  expect(statuses.filter((status) => isWanted(status, wanted))).toEqual([1]);
  expect(statuses.map((status) => wantedStatus(status, wanted))).toEqual([1, 0, 126, 127, 255]);
  const local = { fails: true, isRemote: false };
  expect(statuses.map((status) => wantedStatus(status, local))).toEqual([1, 0, 126, 127, 0]);
  expect(wantedStatus(3, { fails: false, isRemote: true })).toBe(3);
});
