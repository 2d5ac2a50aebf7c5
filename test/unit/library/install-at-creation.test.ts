import { expect, test } from "bun:test";
import { installAtCreation } from "../../../src/library/install-at-creation.ts";
import { failureOf } from "../../support/failure-of.ts";

const failing = (message: string) => async () => {
  throw new Error(message);
};

test("after an installation that failed, a destruction that fails too is thrown with it", async () => {
  const calls: string[] = [];
  const cluster = {
    installFromPath: failing("install"),
    waitForCluster: async () => {},
    destroy: async () => {
      calls.push("destroy");
      throw new Error("destroy");
    },
  };
  const request = { platform: "example:etcd", install: true };
  const failure = await failureOf(installAtCreation(cluster, request));
  expect(failure).toBeInstanceOf(SuppressedError);
  expect(failure).toMatchObject({
    suppressed: { message: "install" },
    error: { message: "destroy" },
  });
  const kept = await failureOf(installAtCreation(cluster, { ...request, keepOnFailure: true }));
  expect(kept.message).toBe("install");
  await installAtCreation({ ...cluster, installFromPath: async () => {} }, request);
  expect(calls).toEqual(["destroy"]);
});
