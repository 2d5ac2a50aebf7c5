import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import {
  cloudSchema,
  parseCloudOptions,
  readCloudOptions,
  tagProblem,
} from "../../../../src/backend/cloud/options.ts";

test.each([
  ["owner", "me"],
  ["owner", ""],
  ["Name", "my cluster"],
  ["k".repeat(128), "v".repeat(256)],
  ["ключ", "значение"],
])("%p: %p is a tag", (key, value) => {
  expect(tagProblem(key, value, [])).toBeUndefined();
});

test.each([
  ["", "x", "a tag needs a key: <TAG_KEY>:<TAG_VALUE>"],
  ["aws:owner", "x", 'tag "aws:owner:x" begins with the reserved "aws:"'],
  ["AWS:owner", "x", 'tag "AWS:owner:x" begins with the reserved "aws:"'],
  ["cluster-e2e:role", "x", 'tag "cluster-e2e:role:x" begins with the reserved "cluster-e2e:"'],
  ["k".repeat(129), "x", `tag key "${"k".repeat(20)}…" is longer than 128 characters`],
  ["key", "v".repeat(257), 'the value of tag "key" is longer than 256 characters'],
  ["key", "a\u0000b", 'tag "key" contains a control character'],
  ["taken", "x", 'tag "taken" is set twice'],
])("%p: %p is refused", (key, value, problem) => {
  expect(tagProblem(key, value, [{ key: "taken", value: "" }])).toBe(problem);
});

test("leaves room for our own tags among the fifty", () => {
  const others = Array.from({ length: 37 }, (_, index) => ({ key: `key-${index}`, value: "" }));
  expect(tagProblem("one-more", "x", others.slice(1))).toBeUndefined();
  expect(tagProblem("one-more", "x", others)).toBe("more than 37 custom tags");
});

test("without options, machines have the usual type, and no tags, ranges, subnet or image", () => {
  const usual = { instanceType: "m5.large", customTags: [], adminCidrs: [] };
  expect(parseCloudOptions({})).toEqual({ value: usual });
  const read = { region: "us-west-2", distribution: "centos-7", options: usual };
  expect(readCloudOptions({ region: "us-west-2" })).toEqual(read);
});

test("subnet and image reach the creation", () => {
  const given = { subnetId: "subnet-01234567", image: "ami-01234567", sshUser: "me" };
  expect(parseCloudOptions(given).value).toMatchObject({
    subnetId: "subnet-01234567",
    image: { id: "ami-01234567", user: "me" },
  });
});

const half = "`image` and `sshUser`: pass both or neither";
test.each([
  [
    { adminCidrs: ["0.0.0.0/0", "192.0.2.7/0"] },
    '`adminCidrs`: "192.0.2.7/0" contains every address: pass a longer prefix, such as /32 for one address, or 0.0.0.0/0 to admit everyone',
  ],
  [{ image: "ami-01234567" }, half],
  [{ sshUser: "me" }, half],
  [
    { customTags: ["1", "2"].map((value) => ({ key: "a", value })) },
    '`customTags`: tag "a" is set twice',
  ],
])("%j is refused", (given, problem) => {
  expect(parseCloudOptions(given).problems?.map(unmarked)).toEqual([problem]);
});

test.each(["owner", ":me"])("a tag %p without a key or a value is refused", (given) => {
  expect(cloudSchema.customTags.read(given)).toBeUndefined();
});
