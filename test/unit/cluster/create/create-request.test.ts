import { expect, test } from "bun:test";
import {
  creationLimit,
  parseSnapshotReference,
} from "../../../../src/cluster/create/create-request.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const file = { location: { path: "/home/me/x.snapshot", shown: "x.snapshot" } };
const url = (text: string) => ({ location: { url: text } });
const isNone = (text: string) => ({
  problem: `"${text}" is not a cluster id and a snapshot's name, such as default:installed`,
});

test.each([
  ["default:installed", { clusterId: "default", name: "installed" }, true],
  ["x.snapshot", file, true],
  ["a:b/x", { location: { path: "/home/me/a:b/x", shown: "a:b/x" } }, true],
  ["/x", { location: { path: "/x", shown: "/x" } }, true],
  ["HTTPS://example.com/x", url("HTTPS://example.com/x"), true],
  ["http://", { problem: "it is not a valid URL" }, true],
  ["https://example.com/x", isNone("https://example.com/x"), false],
  ["x.snapshot", isNone("x.snapshot"), false],
  ["", isNone(""), true],
  ["default:", isNone("default:"), true],
  ["Default!:installed", isNone("Default!:installed"), true],
])("%j is the snapshot %j; files: %p", (given, reference, takesFiles) => {
  expect(parseSnapshotReference(given, "/home/me", ...(takesFiles ? [] : [false]))).toEqual(
    reference as never,
  );
});

test.each([
  [{ deadlineMs: 70_001, lifetimeMs: undefined }, "exceeded its time limit"],
  [{ deadlineMs: 70_001, lifetimeMs: 60_000 }, "exceeded its time limit"],
  [{ deadlineMs: 130_000, lifetimeMs: 1 }, "took longer than its lifetime"],
])(
  "a creation ends at its deadline, or when a lifetime would end its nodes: %j",
  async (times, message) => {
    using limit = creationLimit({ clusterId: "base", ...times }, scriptedClock(70_000));
    const { promise, resolve } = Promise.withResolvers<void>();
    limit.signal.addEventListener("abort", () => resolve());
    await promise;
    expect(limit.signal.reason).toMatchObject({
      id: "deadline-passed",
      message: expect.stringContaining(message),
    });
  },
);
