import { expect, test } from "bun:test";
import { isRemovedFirst, type SyncPlan } from "../../../../src/platform/checkout/checkout.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";

const nothing: SyncPlan = {
  layout: layouts[0],
  list: "own",
  files: [],
  unchanged: [],
  emptiedFolders: [],
  removedFolders: [],
  removedFiles: [],
  keptFiles: [],
};

test.each([
  ["test_a.py", true],
  ["conftest.py", true],
  ["notes.txt", false],
  [".py.bak", false],
  ["deeper/test_b.py", false],
  ["util/anything", true],
  ["util/deeper/anything.py", true],
  ["utilities/a.txt", false],
  ["deeper/util/a.txt", false],
])("before the tests of a release arrive, %s is removed: %p", (path, isRemoved) => {
  expect(
    isRemovedFirst({ ...nothing, emptiedFolders: ["."], removedFolders: ["util"] }, path),
  ).toBe(isRemoved);
});

test.each([
  ["a/test_a.py", true],
  ["a/notes.txt", false],
  ["a/b/test_a.py", false],
  ["test_a.py", false],
])("if only the folder a is emptied, %s is removed: %p", (path, isRemoved) => {
  expect(isRemovedFirst({ ...nothing, emptiedFolders: ["a"] }, path)).toBe(isRemoved);
});
