import { expect, test } from "bun:test";
import { eitherSignal } from "../../../src/system/time-limit.ts";

test("it is aborted with the reason of the first", () => {
  const [one, two] = [new AbortController(), new AbortController()];
  using either = eitherSignal([one.signal, two.signal]);
  expect(either.signal.aborted).toBe(false);
  two.abort("two");
  one.abort("one");
  expect(either.signal.reason).toBe("two");
});

test("one that is aborted beforehand counts", () => {
  using either = eitherSignal([AbortSignal.abort("before")]);
  expect(either.signal.reason).toBe("before");
});

test("once disposed of it hears nothing more", () => {
  const one = new AbortController();
  const either = eitherSignal([one.signal]);
  either[Symbol.dispose]();
  one.abort("late");
  expect(either.signal.aborted).toBe(false);
});
