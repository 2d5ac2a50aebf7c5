import { expect, test } from "bun:test";
import { defaultName, notPackable } from "../../../../src/platform/folder/pack.ts";
import type { PlatformFolder } from "../../../../src/platform/folder/read-folder.ts";

test("a folder with several problems is an error that lists each on a line of its own", () => {
  expect(notPackable(["etcd/check: is missing"]).message).toBe("etcd/check: is missing");
  const problems = ["etcd/check: is missing", "etcd/install: is empty"];
  expect(notPackable(problems)).toMatchObject({
    id: "bad-usage",
    message: "2 problems:\n  etcd/check: is missing\n  etcd/install: is empty",
    facts: { problems },
  });
});

test.each([
  ["3.5.16", "etcd-3.5.16.sh"],
  ["1.0-rc.1+2~x", "etcd-1.0-rc.1+2~x.sh"],
  ["../1 ß", "etcd-.._1__.sh"],
])("an artifact of version %j is called %s", (version, name) => {
  expect(defaultName({ facts: { name: "etcd", version } } as PlatformFolder)).toBe(name);
});
