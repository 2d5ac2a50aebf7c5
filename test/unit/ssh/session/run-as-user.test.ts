/** A user of a node who runs a command. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import script from "../../../../src/ssh/session/run-as-user.sh" with { type: "text" };

test("a number that is a user's id is not a user's name", () => {
  const words = ["-c", script, "sh", "0", "", "true", "word"];
  const { status, stderr } = spawnSync("sh", words, { encoding: "utf8" });
  expect(stderr).toBe("There is no user 0 on this node.\n");
  expect(status).toBe(255);
});
