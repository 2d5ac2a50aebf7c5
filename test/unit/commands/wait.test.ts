import { expect, test } from "bun:test";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { ClusterError, type ErrorId } from "../../../src/errors.ts";
import { readyText } from "../../../src/commands/create/report-created.ts";
import { failureOf } from "../../support/failure-of.ts";
import { runCommandLine } from "../../support/run-command.ts";

test.each<[ErrorId, boolean, boolean]>([
  ["machine-failed", false, true],
  ["cluster-not-found", false, false],
  ["cluster-not-found", true, true],
])(
  "after %s (interrupted: %p), a note says that the cluster is kept: %p",
  async (id, isInterrupted, isNoted) => {
    const told: string[] = [];
    const backend = { find: () => Promise.reject(new ClusterError(id, "no")) };
    const waiting = runCommandLine("wait -c a --engine podman", {
      kind: containerKind,
      backend,
      nowMs: 0,
      isInterrupted,
      told,
    });
    await failureOf(waiting);
    const wait = isInterrupted
      ? "\n    Continue to wait: cluster-container wait --cluster-id a --engine podman"
      : "";
    const note = `Cluster "a" is kept.${wait}
    Save its logs: cluster-container logs --cluster-id a --engine podman
    Remove it: cluster-container destroy --cluster-id a --engine podman`;
    expect(told).toEqual(isNoted ? [note] : []);
  },
);

test("a cluster that is ready says how long it took since its creation", () => {
  expect(readyText("a", 40, 300)).toBe(
    'Cluster "a" is ready after 40 s, 5 min after its creation.',
  );
  expect(readyText("a", 40, undefined)).toBe('Cluster "a" is ready after 40 s.');
});
