import { expect, test } from "bun:test";
import { watchdog } from "../../../src/system/watchdog.ts";

test("it bites when nothing feeds it", async () => {
  using dog = watchdog(20, new AbortController().signal);
  await Bun.sleep(60);
  expect([dog.signal.aborted, dog.hasBitten()]).toEqual([true, true]);
});

test("it doesn't bite while it is fed, nor after its end", async () => {
  const { signal, hasBitten, feed, [Symbol.dispose]: end } = watchdog(60, new AbortController().signal);
  for (let meals = 0; meals < 5; meals += 1) {
    await Bun.sleep(20);
    feed();
  }
  end();
  await Bun.sleep(80);
  expect([signal.aborted, hasBitten()]).toEqual([false, false]);
});

test("an outer abort is not its bite", () => {
  const outer = new AbortController();
  using dog = watchdog(1000, outer.signal);
  outer.abort();
  expect([dog.signal.aborted, dog.hasBitten()]).toEqual([true, false]);
});
