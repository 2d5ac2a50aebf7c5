import { unmarked } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { superuserLogin } from "../../../src/cluster/wait-for-cluster.ts";
import { baseConfiguration } from "../../../src/platform/configuration/configuration.ts";

const { superuser_password_hash: defaultHash } = baseConfiguration({
  clusterName: "a",
  variant: "enterprise",
  nodes: [],
  bootstrapUrl: "",
  resolvers: [],
  ipDetectPublicFile: undefined,
  licenseKey: undefined,
});

test.each([
  ["the default one", {}, undefined, { username: "admin", password: "admin" }],
  [
    "another name",
    { superuser_username: "operator" },
    undefined,
    { username: "operator", password: "admin" },
  ],
  [
    "a name in digits",
    { superuser_username: 1000 },
    undefined,
    { username: "1000", password: "admin" },
  ],
  [
    "the default hash",
    { superuser_password_hash: defaultHash },
    undefined,
    { username: "admin", password: "admin" },
  ],
  [
    "a hash and its password",
    { superuser_password_hash: "$6$a$b" },
    "own",
    { username: "admin", password: "own" },
  ],
])("the superuser's login is that of the configuration: %s", (_, configuration, given, login) => {
  expect(superuserLogin("enterprise", configuration, given)).toEqual({ value: login });
});

test("a hash alone is a problem that says how to give the password", () => {
  const { problems } = superuserLogin(
    "enterprise",
    { superuser_password_hash: "$6$a$b" },
    undefined,
  );
  expect(problems?.map(unmarked)).toEqual([
    expect.stringContaining("pass the password with `superuserPassword`"),
  ]);
});

test("the open source variant has no superuser", () => {
  expect(superuserLogin("oss", { superuser_password_hash: "$6$a$b" }, undefined)).toEqual({
    value: undefined,
  });
});
