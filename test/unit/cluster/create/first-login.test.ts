/** What becomes of a new machine at whose address nothing answers. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FirstLogin } from "../../../../src/backend/contract.ts";
import { openConnections } from "../../../../src/cluster/connections.ts";
import { firstLogin } from "../../../../src/cluster/create/first-login.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { type Clock, passedMs } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { freePort } from "../../../support/free-port.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock, settableClock } from "../../../support/scripted-clock.ts";

/** Logs in where nothing listens. Returns the failure, and when it came. */
async function logIn(
  first: Partial<FirstLogin>,
  deadlineMs: number,
  clock: Clock = scriptedClock(),
) {
  await using scratch = await scratchFolder();
  const directory = join(scratch.path, "demo");
  const { privateKey, publicKey } = generateKeyPair("test");
  await mkdir(directory);
  await writeFile(creationFiles(directory).privateKey, privateKey);
  const { progress, steps } = recordingProgress();
  const runtime = { environment: {}, clock, progress };
  await using connections = openConnections(directory, runtime);
  const creation = {
    firstLogin: {
      lookEveryMs: 1_000,
      limitMs: 60_000,
      everyMs: 500,
      hostKey: () => ({ publicKey, isPrivate: true }),
      ...first,
    },
  };
  const login = await firstLogin(
    { directory, connections, creation, deadlineMs, untilSwitched: false },
    runtime,
  );
  const address = { host: "127.0.0.1", port: await freePort(), user: "root" };
  const node = { id: "m", role: "master", index: 0, state: "running", ssh: address } as const;
  const web = { host: "127.0.0.1", httpPort: 80, httpsPort: 443 };
  const failure = await failureOf(
    login({ ...node, web, publicAddress: undefined, privateAddress: undefined }, neverAborted),
  );
  expect(steps).toEqual(["Boot master_0: failed"]);
  return { failure, atMs: passedMs(clock) };
}

test.each([
  ["its own limit", 5_000, 60_000, "connection-failed"],
  ["the creation's deadline", 60_000, 5_000, "deadline-passed"],
])("it is given up at %s", async (_, limitMs, deadlineMs, id) => {
  const { failure, atMs } = await logIn({ limitMs }, deadlineMs);
  expect(failure).toMatchObject({ id, message: expect.stringContaining("Cannot reach master_0") });
  expect(atMs).toBeWithin(4_000, 5_001);
});

test.each([3_600_000, -3_600_000])(
  "it has its time also if the clock has been set by %d ms since the creation began",
  async (ms) => {
    const { clock, set } = settableClock();
    set.ms = ms;
    const { failure, atMs } = await logIn({ limitMs: 5_000 }, 60_000, clock);
    expect(failure.id).toBe("connection-failed");
    expect(atMs).toBeWithin(4_000, 5_001);
    const late = settableClock();
    late.set.ms = ms;
    expect((await logIn({ limitMs: 60_000 }, 5_000, late.clock)).failure.id).toBe(
      "deadline-passed",
    );
  },
);

test("if the backend knows why it is unreachable, the error says that instead", async () => {
  const cause = { reason: "A firewall is in the way.", hint: "Open port 22." };
  const { failure } = await logIn({ whyUnreachable: async () => cause }, 1_000);
  expect(failure).toMatchObject({ id: "connection-failed", hint: cause.hint });
  expect(failure.message).toEndWith(` ${cause.reason}`);
});
