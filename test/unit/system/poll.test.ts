import { expect, test } from "bun:test";
import { systemClock } from "../../../src/system/runtime.ts";
import { poll } from "../../../src/system/retry.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scriptedClock, settableClock } from "../../support/scripted-clock.ts";

test("looks again until there is a result", async () => {
  const clock = scriptedClock();
  const looks = [undefined, undefined, 0];

  const result = await poll(
    async () => looks.shift(),
    { clock, pauseMs: (count) => count * 10 },
    neverAborted,
  );

  expect(result).toBe(0);
  expect(clock.pauses).toEqual([10, 20]);
});

test("looks a last time at the deadline, and then returns undefined", async () => {
  const clock = scriptedClock();
  const times: number[] = [];
  const look = async (): Promise<undefined> => void times.push(clock.now());

  expect(
    await poll(look, { clock, deadlineMs: 25, pauseMs: () => 10 }, neverAborted),
  ).toBeUndefined();

  expect(times).toEqual([0, 10, 20, 25]);
});

test.each([-3_600_000, 3_600_000])(
  "the deadline stays where it is if the clock is set by %p ms",
  async (ms) => {
    const { clock, set } = settableClock();
    const passed: unknown[] = [];
    const look = async (): Promise<undefined> => {
      if (passed.push(clock.passed?.()) === 2) set.ms = ms;
    };
    await poll(look, { clock, deadlineMs: 25, pauseMs: () => 10 }, neverAborted);
    expect(passed).toEqual([0, 10, 20, 25]);
  },
);

test("looks once if the deadline has passed before", async () => {
  let looks = 0;
  const look = async (): Promise<undefined> => {
    looks += 1;
  };

  await poll(look, { clock: scriptedClock(), deadlineMs: 0, pauseMs: () => 10 }, neverAborted);

  expect(looks).toBe(1);
});

test("tolerates the named failures until the deadline, and throws any other at once", async () => {
  const clock = scriptedClock();
  const rule = {
    clock,
    deadlineMs: 25,
    pauseMs: () => 10,
    tolerates: (error: unknown) => error instanceof RangeError,
  };
  const failing = (error: Error) => async (): Promise<undefined> => {
    throw error;
  };

  expect(await poll(failing(new TypeError("other")), rule, neverAborted).catch(String)).toBe(
    "TypeError: other",
  );
  expect(clock.pauses).toEqual([]);
  expect(await poll(failing(new RangeError("busy")), rule, neverAborted).catch(String)).toBe(
    "RangeError: busy",
  );
  expect(clock.pauses).toEqual([10, 10, 5]);
});

test("shows each change of what it waits for, and nothing once it is over", async () => {
  const shown: string[] = [];
  const left = [2, 1, 0];
  const look = async (): Promise<true | undefined> => left.shift() === 0 || undefined;
  const shows = {
    progress: { waiting: (text: string) => void shown.push(text) },
    waitingFor: () => (left.length === 1 ? "" : `${left.length} machines`),
  };

  await poll(look, { clock: scriptedClock(), pauseMs: () => 10, shows }, neverAborted);

  expect(shown).toEqual(["waiting for 2 machines", ""]);
});

test("shows again what it waits for after a look that showed something else", async () => {
  const shown: string[] = [];
  const waiting = (text: string) => void shown.push(text);
  const looks = [
    () => undefined,
    () => {
      waiting("waiting for the API");
      waiting("");
    },
    () => true,
  ];
  const shows = { progress: { waiting }, waitingFor: () => "2 machines" };

  await poll(
    async () => looks.shift()?.() ?? undefined,
    { clock: scriptedClock(), pauseMs: () => 10, shows },
    neverAborted,
  );

  const pollShows = "waiting for 2 machines";
  expect(shown).toEqual([pollShows, "waiting for the API", "", pollShows, ""]);
});

test.each([true, false])(
  "ends with the reason of the signal, whether it tolerates the failure: %p",
  async (tolerates) => {
    const abort = new AbortController();
    const look = async (): Promise<undefined> => {
      abort.abort(new Error("interrupted"));
      throw new Error("because of that");
    };

    const rule = { clock: scriptedClock(), pauseMs: () => 10, tolerates: () => tolerates };
    const failure = poll(look, rule, abort.signal);

    expect(await failure.catch(String)).toBe("Error: interrupted");
  },
);

const soon = (act: () => void): void => void setTimeout(act, 1);

test("looks again at once when it is woken", async () => {
  const wake = new AbortController();
  const looks = [undefined, "seen"];
  const look = async (): Promise<string | undefined> => {
    soon(() => wake.abort());
    return looks.shift();
  };

  expect(
    await poll(
      look,
      { clock: systemClock, pauseMs: () => 600_000, wakeUp: () => wake.signal },
      neverAborted,
    ),
  ).toBe("seen");
  expect(wake.signal.aborted).toBe(true);
});

test("doesn't look again after an abort in a pause from which it can be woken", async () => {
  const abort = new AbortController();
  let looks = 0;
  const look = async (): Promise<undefined> => {
    looks += 1;
    soon(() => abort.abort(new Error("interrupted")));
  };

  const rule = { clock: systemClock, pauseMs: () => 600_000, wakeUp: () => neverAborted };
  expect(await poll(look, rule, abort.signal).catch(String)).toBe("Error: interrupted");
  expect(looks).toBe(1);
});

test("progress begins the time until the deadline again, and a wait without any ends", async () => {
  const clock = scriptedClock();
  const seen = { parts: 0 };
  const look = async (): Promise<undefined> => {
    if (seen.parts < 5) seen.parts += 1;
    return undefined;
  };
  const rule = { clock, deadlineMs: 25, pauseMs: () => 20, seen: () => seen.parts };
  expect(await poll(look, rule, neverAborted)).toBeUndefined();
  expect(seen.parts).toBe(5);
  expect(clock.nowMs).toBe(4 * 20 + 25);
});

test("the time that passes is whole milliseconds, as Node's time limits need them", async () => {
  const times = Array.from({ length: 20 }, () => systemClock.passed?.());
  expect(times.filter((ms) => !Number.isInteger(ms))).toEqual([]);
});
