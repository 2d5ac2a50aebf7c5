import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import { findSource } from "../../../support/find-source.ts";

/** Nothing of the machine that the test runs on. */
const find = async (variables: Record<string, string>) =>
  findSource({ AWS_EC2_METADATA_DISABLED: "true", ...variables });

const own = { CLOUD_ACCESS_KEY_ID: "AKOWN", CLOUD_SECRET_ACCESS_KEY: "own" };
const usual = { AWS_ACCESS_KEY_ID: "AKUSUAL", AWS_SECRET_ACCESS_KEY: "usual" };

// Shows R82, R84.
test("the document's variables come first", async () => {
  const source = await find({ ...own, ...usual, CLOUD_PROFILE: "dev", AWS_PROFILE: "other" });
  expect(source.name).toBe("the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY");
  expect(await source.provide()).toEqual({ accessKeyId: "AKOWN", secretAccessKey: "own" });
});

test("a session token goes with them", async () => {
  const source = await find({ ...own, CLOUD_SESSION_TOKEN: "token" });
  expect(await source.provide()).toEqual({
    accessKeyId: "AKOWN",
    secretAccessKey: "own",
    sessionToken: "token",
  });
});

// Shows R83, R84.
test.each([
  [{ CLOUD_PROFILE: "dev", AWS_PROFILE: "other", ...usual }, 'profile "dev" (CLOUD_PROFILE)'],
  [{ AWS_PROFILE: "other", ...usual }, 'profile "other" (AWS_PROFILE)'],
  [{ CLOUD_PROFILE: "", ...usual }, "the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"],
  ...[
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  ].map(
    (variable) =>
      [
        { [variable]: "/token", AWS_ROLE_ARN: "arn:aws:iam::111122223333:role/r" },
        `the service that ${variable} names`,
      ] as const,
  ),
])("then %p", async (variables, name) => {
  expect((await find(variables)).name).toBe(name);
});

test.each([
  [{ CLOUD_ACCESS_KEY_ID: "AK" }, "CLOUD_ACCESS_KEY_ID is set without CLOUD_SECRET_ACCESS_KEY."],
  [
    { CLOUD_SECRET_ACCESS_KEY: "x", ...usual },
    "CLOUD_SECRET_ACCESS_KEY is set without CLOUD_ACCESS_KEY_ID.",
  ],
  [
    { CLOUD_SESSION_TOKEN: "x" },
    "CLOUD_SESSION_TOKEN is set without CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY.",
  ],
  [
    { CLOUD_ACCESS_KEY_ID: "AK", CLOUD_SESSION_TOKEN: "x" },
    "CLOUD_ACCESS_KEY_ID, CLOUD_SESSION_TOKEN are set without CLOUD_SECRET_ACCESS_KEY.",
  ],
  [{ AWS_ACCESS_KEY_ID: "AK" }, "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY."],
  [
    { AWS_WEB_IDENTITY_TOKEN_FILE: "/t" },
    "AWS_WEB_IDENTITY_TOKEN_FILE is set without AWS_ROLE_ARN.",
  ],
])("half of a pair is an error: %p", async (variables, message) => {
  const error = await find(variables).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ClusterError);
  expect(error).toMatchObject({ id: "no-credentials", exitCode: 5, message });
});

test.each([
  [{ ...own, CLOUD_SECRET_ACCESS_KEY: "own\n" }, ["CLOUD_SECRET_ACCESS_KEY"]],
  [
    { ...usual, AWS_ACCESS_KEY_ID: " AK", AWS_SESSION_TOKEN: "t\r" },
    ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"],
  ],
  [{ ...own, CLOUD_ACCESS_KEY_ID: "AKé" }, ["CLOUD_ACCESS_KEY_ID"]],
])("what no key contains is an error that doesn't show it: %p", async (variables, unusable) => {
  const error = await find(variables).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ id: "no-credentials", exitCode: 5, facts: { unusable } });
  expect((error as ClusterError).message).toStartWith(`${unusable.join(" and ")} must not contain`);
});

test("none at all is an error that says what was looked for", async () => {
  const error = await find({}).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ id: "no-credentials" });
  expect((error as ClusterError).message).toMatchInlineSnapshot(
    `"No cloud credentials were found. Looked for: CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY; CLOUD_PROFILE; AWS_PROFILE; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; a default profile in /nonexistent/.aws/credentials; instance metadata."`,
  );
});
