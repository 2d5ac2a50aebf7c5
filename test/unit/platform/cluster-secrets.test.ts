import { expect, test } from "bun:test";
import { parseSecrets } from "../../../src/platform/cluster-secrets.ts";
import { hostileOutputs } from "../../support/hostile-output.ts";

const frame = (name: string, text: string): string => `${name} ${Buffer.from(text).toString("base64")}\n`;

test("a configuration's secrets are known by their keys, a key file's by all of it", async () => {
  const configuration =
    'superuser_password_hash: "$6$salt$hash"\nlicense_key_contents: "line one\\nline two"\nsecurity: strict\n';
  const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n";
  const login = '{"uid": "admin", "token_secret": "0123abcd"}';
  const stdout = frame("configuration", configuration) + frame("secret-0", login) + frame("secret-1", key);
  expect(await parseSecrets(stdout)).toEqual({
    values: ["$6$salt$hash", "line one\nline two", "0123abcd", key],
    areComplete: true,
  });
});

test("a mapping without secrets has none", async () => {
  const { values } = await parseSecrets(frame("secret-0", "security: strict\n"));
  expect(values).toEqual([]);
});

test("a key file that looks like a comment is a secret", async () => {
  const { values } = await parseSecrets(frame("secret-0", "#k3y-0123abcd\n"));
  expect(values).toEqual(["#k3y-0123abcd\n"]);
});

test("before the installation nothing is known, and that is said", async () => {
  expect(await parseSecrets("configuration \nsecret-0 \n")).toEqual({ values: [], areComplete: false });
});

test("1000 hostile files: texts, or nothing", async () => {
  for (const text of hostileOutputs(47, 1000)) {
    const { values } = await parseSecrets(text + frame("configuration", text) + frame("secret-0", text));
    for (const value of values) expect(value).toBeString();
  }
}, 60_000);
