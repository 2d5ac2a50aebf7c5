/** How long first contact waits for a node that doesn't answer. The time of the clock passes only while it waits. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeFirstContact } from "../../../src/ssh/first-contact.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { freePort } from "../../support/free-port.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";

test.each([
  ["nothing new", { bootsUntilMs: 0, deadlineMs: 3_600_000 }, 600_000],
  ["something new for a while", { bootsUntilMs: 2_000_000, deadlineMs: 3_600_000 }, 2_600_000],
  ["something new for ever", { bootsUntilMs: Infinity, deadlineMs: 3_600_000 }, 3_600_000],
  ["nothing new, with little time", { bootsUntilMs: 0, deadlineMs: 300_000 }, 300_000],
])("a node that shows %s is given up in time", async (_, { bootsUntilMs, deadlineMs }, endMs) => {
  await using folder = await scratchFolder();
  const clock = scriptedClock();
  const pair = generateKeyPair("");
  const ssh = { host: "127.0.0.1", port: await freePort(), user: "me" };
  const contact = makeFirstContact(
    {
      destination: { id: "i-1", role: "agent", index: 0, ssh },
      privateKey: pair.privateKey,
      firstHostKey: pair.publicKey,
      knownHosts: createKnownHosts(join(folder.path, "known_hosts")),
      hostKeyLocation: undefined,
      untilSwitched: false,
      clock,
      deadlineMs,
      quietMs: 600_000,
      sign: async () => String(Math.min(clock.now(), bootsUntilMs)),
      everyMs: 10_000,
      progress: silentProgress,
    },
    neverAborted,
  );
  expect((await failureOf(contact)).id).toBe("connection-failed");
  expect(clock.now()).toBeLessThanOrEqual(endMs + 12_000);
  expect(clock.now()).toBeGreaterThan(endMs - 24_000);
});
