import { expect, test } from "bun:test";
import { judgeSelinux } from "../../../../../src/backend/container/checks/mounts.ts";

test.each([
  ["1\n", "Enforcing, but nodes are not confined by it: `customVolumes` needs no :z"],
  ["0\n", "Not enforcing"],
  [undefined, "Not enforcing"],
])("what this machine's SELinux means for volumes is said where it says %j", (enforce, message) => {
  const outcome = judgeSelinux(enforce);
  expect(outcome.status).toBe("pass");
  expect(outcome.message).toContain(message);
});
