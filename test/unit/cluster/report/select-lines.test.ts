import { expect, test } from "bun:test";
import { thinner } from "../../../../src/cluster/report/select-lines.ts";

const line = (second: number, text = "fine") => ({
  ms: second * 1000,
  node: "agent_0",
  unit: "app",
  text,
});

test("of a long log there remain errors, signs, what is near a moment, and the newest lines", () => {
  const log = Array.from({ length: 30_000 }, (_, second) => line(second));
  log[100] = line(100, "connection refused");
  log[200] = { ...line(200, "Oops: 0002 [#1] SMP"), unit: "kernel" };
  const dropped: number[] = [];
  const kept = thinner([300_000], 10, (count) => void dropped.push(count))(log);
  const seconds = kept.map(({ ms = 0 }) => ms / 1000);
  const near = Array.from({ length: 11 }, (_, index) => 295 + index);
  expect(seconds.slice(0, 14)).toEqual([0, 100, 200, ...near]);
  expect(seconds.slice(14)).toEqual(log.slice(-4900).map(({ ms }) => ms / 1000));
  expect(dropped).toEqual([log.length - kept.length]);
});

test("a short log stays as it is, in the order of its times", () => {
  const kept = thinner([], 1000, () => {})([line(3), line(1), line(2)]);
  expect(kept.map(({ ms }) => ms)).toEqual([1000, 2000, 3000]);
});

test("a log of errors alone takes its share of the page, and no more than five times of that", () => {
  const log = Array.from({ length: 100_000 }, (_, second) => line(second, "connection refused"));
  const newest = 49;
  const kept = thinner([100_000], 1000, () => {})(log);
  expect(kept).toHaveLength(1 + 5 * newest);
  expect(kept.at(-1)).toBe(log.at(-1));
});
