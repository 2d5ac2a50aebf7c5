import { expect, test } from "bun:test";
import { runOnNode, type RunRequest } from "../../../src/cluster/run-on-node.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";

/** Returns what is masked from the first moment on, even if the command can't run. */
async function maskedOf(request: Partial<RunRequest>): Promise<readonly string[]> {
  const masked: string[] = [];
  const progress = { ...silentProgress, hide: (secret: string) => void masked.push(secret) };
  const whole = {
    login: { name: undefined, password: undefined },
    variables: {},
    node: undefined,
    ...request,
  };
  const runtime = { environment: {}, clock: systemClock, progress, onConnecting: () => {} };
  const { signal } = new AbortController();
  const failure = await failureOf(
    runOnNode({ ...runtime, signal }, exampleCluster([], "oss"), whole as RunRequest),
  );
  expect(failure.id).toBe("node-not-found");
  return masked;
}

test("the login is masked, and the command line masks what is secret among the variables", async () => {
  expect(await maskedOf({ login: { name: "ada", password: "pw" } })).toEqual(["ada", "pw"]);
  expect(await maskedOf({ variables: { TOKEN: "1234" } })).toEqual([]);
});
