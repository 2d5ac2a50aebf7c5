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
  ["default:installed", { clusterId: "default", name: "installed" }],
  ["x.snapshot", file],
  ["a:b/x", { location: { path: "/home/me/a:b/x", shown: "a:b/x" } }],
  ["/x", { location: { path: "/x", shown: "/x" } }],
  ["HTTPS://example.com/x", url("HTTPS://example.com/x")],
  ["http://", { problem: "it is not a valid URL" }],
  ["", isNone("")],
  ["default:", isNone("default:")],
  ["Default!:installed", isNone("Default!:installed")],
])("%j is the snapshot %j", (given, reference) => {
  expect(parseSnapshotReference(given, "/home/me")).toEqual(reference as never);
});

test.each([
  [{ deadlineMs: 70_001, lifetimeMs: undefined }, "exceeded its time limit"],
  [{ deadlineMs: 70_001, lifetimeMs: 60_000 }, "exceeded its time limit"],
  [{ deadlineMs: 130_000, lifetimeMs: 1 }, "took longer than its lifetime"],
])(
  "a creation ends at its deadline, or when a lifetime would end its nodes: %j",
  async (times, message) => {
    // Whatever this computer's own time is by now.
    const clock = { ...scriptedClock(9_000_000), passed: () => 70_000 };
    using limit = creationLimit({ clusterId: "base", ...times }, clock);
    const { promise, resolve } = Promise.withResolvers<void>();
    limit.signal.addEventListener("abort", () => resolve());
    await promise;
    expect(limit.signal.reason).toMatchObject({
      id: "deadline-passed",
      message: expect.stringContaining(message),
    });
  },
);
