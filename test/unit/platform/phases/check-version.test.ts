import { expect, test } from "bun:test";
import { ClusterError, type ErrorId } from "../../../../src/errors.ts";
import { endedBadly } from "../../../../src/platform/phases/check-version.ts";

const failure = (id: ErrorId, status: number | undefined): ClusterError =>
  new ClusterError(id, "It failed.", { facts: { ...(status !== undefined && { status }) } });

// Only an artifact that ran and failed may succeed once the node has Docker.
test.each([
  ["an artifact that ran and failed", true, failure("artifact-invalid", 1)],
  ["an artifact that lacks a program", true, failure("artifact-invalid", 127)],
  ["a file with another checksum", false, failure("artifact-invalid", 90)],
  ["a file that isn't an artifact", false, failure("artifact-invalid", undefined)],
  ["a command that failed on the node", false, failure("remote-command-failed", 1)],
  ["a bug", false, new Error("status 1")],
])("%s has ended badly: %p", (_, hasEndedBadly, error) => {
  expect(endedBadly(error)).toBe(hasEndedBadly);
});
