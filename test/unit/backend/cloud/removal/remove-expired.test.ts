import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { removeExpired } from "../../../../../src/backend/cloud/removal/remove-expired.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { silentProgress } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";

type Inventory = Parameters<typeof removeExpired>[1];

/** Removes the group of an expired cluster on an API that answers like this. Returns what -v shows. */
async function remove(answer: () => Promise<object>, signal: AbortSignal): Promise<readonly string[]> {
  const told: string[] = [];
  const detail = (level: number, text: string): void => void told.push(`-${"v".repeat(level)}: ${text}`);
  const group = {
    id: "sg-0123456789abcdef0",
    clusterId: "old",
    creationId: "0123456789abcdef",
    expiresAt: new Date(0),
  };
  const foreignResources = [{ what: "instance i-1", why: "its tag cluster-e2e:role is missing" }];
  const inventory = { machines: [], groups: [{ ...group, rules: [] }], foreignResources } as Inventory;
  const runtime = {
    environment: {},
    clock: { now: () => 0, sleep: async () => {} },
    progress: { ...silentProgress, detail },
  };
  const api = { region: "us-west-2", now: () => 1, call: answer } as unknown as CloudApi;
  await removeExpired(api, inventory, { clusterId: "own", runtime }, signal);
  return told;
}

const never = new AbortController().signal;
const ignored =
  "-v: Ignored, because this program did not create it in this form: instance i-1: its tag cluster-e2e:role is missing.";

test("-v shows what an ended cluster left and was removed", async () => {
  expect(await remove(async () => Promise.resolve({}), never)).toEqual([
    ignored,
    "-v: Removed the remains of an expired cluster: sg-0123456789abcdef0",
  ]);
});

test("remains that can't be removed don't end the create; -v shows why they stay", async () => {
  const answer = async (): Promise<object> => Promise.reject(new ClusterError("not-permitted", "You may not do that."));
  expect(await remove(answer, never)).toEqual([
    ignored,
    "-v: Cannot remove the remains of an expired cluster, sg-0123456789abcdef0: You may not do that.",
  ]);
});

test("an interrupt ends the removal, and a bug is reported as one", async () => {
  const interrupted = new AbortController();
  const interrupting = async (): Promise<object> => {
    interrupted.abort(new Error("interrupted"));
    throw new ClusterError("cloud-failed", "No answer.");
  };
  expect((await failureOf(remove(interrupting, interrupted.signal))).message).toBe("interrupted");
  const bug = async (): Promise<object> => Promise.reject(new TypeError("no such property"));
  expect((await failureOf(remove(bug, never))).message).toBe("no such property");
});
