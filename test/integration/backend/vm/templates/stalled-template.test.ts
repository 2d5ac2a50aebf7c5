/** A template's machine that has stopped booting. The time of the clock passes only while the program waits. */
import { expect, test } from "bun:test";
import { appendFile } from "node:fs/promises";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedClock } from "../../../../support/scripted-clock.ts";
import { key, openBench } from "./templates-bench.ts";

test("a template boots as long as its console shows something new, and what it showed last is told", async () => {
  const clock = scriptedClock(Date.now());
  await using bench = await openBench(clock);
  await bench.behave({ boot: "nothing" });
  const creation = await bench.claim("slow");
  const startedMs = clock.now();
  const printed = { lines: 0, untilMs: 0 };
  const { sleep } = clock;
  // Prints for two hours, three times the limit.
  clock.sleep = async (ms, signal) => {
    if (ms === 500 && clock.now() - startedMs < 2 * 3_600_000) {
      const file = bench.at("vm", "slow-0123456789abcde0", "machines", "template", "console.txt");
      clock.nowMs += 10 * 60_000;
      await appendFile(file, `still mounting ${(printed.lines += 1)}\n`);
      printed.untilMs = clock.now();
    }
    await sleep(ms, signal);
  };
  await creation.launch(key, neverAborted);
  expect(printed.lines).toBe(12);
  expect(bench.notes().join()).toContain(
    "it has printed nothing new for 40 minutes, and has not booted. Last seen: still mounting 12",
  );
  expect(await bench.starts()).toEqual(["boot", "fresh", "fresh"]);
});
