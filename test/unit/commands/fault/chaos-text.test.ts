import { messageOf } from "../../../../src/errors.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { BadValue } from "../../../../src/cli/options/option.ts";
import { chaosText, parseChaos, valueText } from "../../../../src/commands/fault/chaos-text.ts";

test.each([
  "seed=7,every=30s,kinds=partition,targets=one,minority",
  "seed=7,every=1500ms,kinds=partition",
  "seed=7,every=60s,kinds=partition,process,targets=majority,recover=60s,only=1,3,unit=etcd",
  "seed=0,every=5s,kinds=network,targets=one,delay=200ms,loss=5%,rate=512kbit,towards=agents,all",
  "seed=4294967295,every=5s,kinds=clock,disk,targets=one,offset=-30s,fill=/var,leave=1024",
  "seed=1,every=5s,kinds=partition,targets=one,one-way",
])("%s reads the same again", (text) => {
  if (text.includes("1500ms")) return expect(() => parseChaos(text)).toThrow(BadValue);
  const options = parseChaos(text);
  expect(parseChaos(chaosText(options))).toEqual(options);
  expect(chaosText(options).replace("=true", "")).toBe(text);
});

test("without a seed, one is drawn", () => {
  expect(parseChaos("kinds=partition").seed).toBeWithin(0, 2 ** 32);
  expect(parseChaos("seed=7")).toEqual({
    seed: 7,
    everyMs: 30_000,
    kinds: ["partition"],
    targets: ["one", "minority"],
  });
});

function problemWith(text: string): string {
  try {
    parseChaos(text);
    return "";
  } catch (error) {
    return messageOf(error);
  }
}

test.each([
  ["", "is not one of seed"],
  ["sed=7", "is not one of seed"],
  ["seed=-1", "is not a whole number"],
  ["seed=4294967296", "`seed`: must be"],
  ["every=1s", "`everyMs`: must be"],
  ["kinds=flood", "is not one of partition"],
  ["kinds=process", "`unit` or `program`: required by process"],
  ["kinds=disk,fill=var", "`folder`: must be"],
  ["targets=all", "is not one of one, minority, majority"],
  ["between=agent_0", "is not one of seed, every, kinds, targets, recover, only, one-way, delay,"],
  ["kinds=partition,partition", "`kinds`: name each once"],
  ["seed=7,every=30s,seed=8", "seed: given more than once"],
  ["every=0s", "`everyMs`: must be from 5 s to 24 h"],
  ["every=25d", "`everyMs`: must be from 5 s to 24 h"],
  ["only=", 'only: "" is not a whole number'],
  ["only=0", "`only`: must be"],
  ["delay=1", "is not a duration"],
])("%j is refused", (text, problem) => {
  expect(() => parseChaos(text)).toThrow(BadValue);
  expect(unmarked(problemWith(text))).toContain(problem);
});

test.each([
  [600_000, "600s"],
  [1_500, "1500ms"],
])("the line that repeats a plan has a duration that is read: %d ms", (durationMs, text) => {
  expect(valueText("durationMs", durationMs)).toBe(text);
});
