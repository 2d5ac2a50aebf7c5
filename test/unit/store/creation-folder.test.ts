import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  creationDirectory,
  creationOfDirectory,
  parseCreation,
} from "../../../src/store/creation-folder.ts";
import { hostileTexts } from "../../support/hostile-text.ts";

const creationId = "0123456789abcdef";
const directory = `/state/vm/nightly-1-${creationId}`;

test("a folder's name tells which creation it is, and is made of nothing else", () => {
  expect(creationDirectory("/state/vm", "nightly-1", creationId)).toBe(directory);
  expect(creationOfDirectory(directory)).toEqual({ clusterId: "nightly-1", creationId });
  expect(creationOfDirectory("/state/vm/nightly-0123456789ABCDEF")).toBeUndefined();
  for (const text of hostileTexts(17, 5000)) {
    for (const [clusterId, creation] of [
      [text, creationId],
      ["default", text],
    ] as const) {
      const made = attempt(() => creationDirectory("/root/of/it", clusterId, creation));
      if (made !== undefined)
        expect(made).toMatch(/^\/root\/of\/it\/[A-Za-z0-9][\w.-]*-[0-9a-f]{16}$/);
    }
    const name = creationOfDirectory(join("/state/vm", text));
    if (name !== undefined) expect(`${name.clusterId}-${name.creationId}`).toMatch(/^[\w.-]+$/);
  }
});

test("ids that nobody parsed are a bug that names them", () => {
  expect(() => creationDirectory("/root", "..", "x")).toThrow('["..","x"]');
});

function attempt(make: () => string): string | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

const owner = { host: "here", pid: 4711, startedAt: "boot:1" };
const creation = {
  schemaVersion: 1,
  clusterId: "nightly-1",
  creationId,
  state: "unfinished",
  owner,
};

test("creation.json is read back, and belongs to its folder", () => {
  expect(parseCreation(creation, directory)).toEqual({
    ...creation,
    schemaVersion: 1,
    state: "unfinished",
  });
  expect(parseCreation(creation, `/state/vm/other-${creationId}`)).toBeUndefined();
  expect(parseCreation({ ...creation, owner: { pid: "4711" } }, directory)?.owner).toBeUndefined();
});

// Shows R135.
test.each(["schemaVersion", "clusterId", "creationId", "state"])(
  "creation.json with any other %s is none",
  (key) => {
    for (const text of [...hostileTexts(19, 1000), undefined, null, 7, {}, []])
      expect(parseCreation({ ...creation, [key]: text }, directory)).toBeUndefined();
  },
);

test("what is no object is no creation", () => {
  for (const found of [...hostileTexts(23, 200), undefined, null, 7, [], [creation]])
    expect(parseCreation(found, directory)).toBeUndefined();
});
