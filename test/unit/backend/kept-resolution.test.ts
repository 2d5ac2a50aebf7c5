import { expect, test } from "bun:test";
import { keptResolution } from "../../../src/backend/kept-resolution.ts";

const never = new AbortController().signal;
const counts = { master: 1, agent: 1, public_agent: 0 };

test("what plan found out is used by the provision of the same request, once", async () => {
  const asked: string[] = [];
  const { find, take } = keptResolution<string, number>(async ({ creation }) => {
    asked.push(creation);
    return Promise.resolve(asked.length);
  });
  const small = {
    distribution: "debian-12",
    creation: "small",
    counts,
    needsCgroups1: false,
    imagePreparation: undefined,
  };
  expect(await find(small, never)).toBe(1);
  expect(await take({ ...small, counts: { ...counts } }, never)).toBe(1);
  expect(await take(small, never)).toBe(2);
  expect(await take({ ...small, counts: { ...counts, agent: 2 } }, never)).toBe(3);
  expect(await take({ ...small, creation: "large" }, never)).toBe(4);
  expect(asked).toEqual(["small", "small", "small", "large"]);
});
