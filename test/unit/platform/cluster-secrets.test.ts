import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { unmarked } from "../../../src/outside-text.ts";
import { parseSecrets } from "../../../src/platform/cluster-secrets.ts";
import { Masker } from "../../../src/system/masker.ts";
import { hostileOutputs } from "../../support/hostile-output.ts";

/** Those of a text that is within the limits. */
const secretsIn = async (stdout: string) => (await parseSecrets(stdout))!;

const frame = (name: string, text: string): string =>
  `${name} ${Buffer.from(text).toString("base64")}\n`;

test("a configuration's secrets are known by their keys, a key file's by all of it", async () => {
  const configuration =
    'superuser_password_hash: "$6$salt$hash"\nlicense_key_contents: "line one\\nline two"\nsecurity: strict\n';
  const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n";
  const login = '{"uid": "admin", "token_secret": "0123abcd"}';
  const stdout = [
    frame("configuration", configuration),
    frame("status", "exit 0\n"),
    frame("secret-0", login),
    frame("secret-1", key),
  ].join("");
  expect(await parseSecrets(stdout)).toEqual({
    values: ["$6$salt$hash", "line one\nline two", "0123abcd", key],
    areComplete: true,
    unmasked: [],
  });
});

test("files that only the platform names are secrets too, but no more of them than it may name", async () => {
  const stdout = [0, 19, 20]
    .map((number) => frame(`listed-${number}`, `secret ${number}`))
    .join("");
  expect((await secretsIn(stdout)).values).toEqual(["secret 0", "secret 19"]);
});

test("each file that is there and can't be masked is named, with the reason", async () => {
  const lines = "long /etc/app/all\nunreadable /etc/app/a b\nunreadable relative\nother /x\n\n";
  const { unmasked } = await secretsIn(frame("unmasked", lines));
  expect(unmasked.map(unmarked)).toEqual([
    "the secrets in /etc/app/all on the first master are not masked: it is longer than 64 kB",
    "the secrets in /etc/app/a b on the first master are not masked: it is no file that root can read, or others than root can change the links to it",
  ]);
  const many = Array.from({ length: 500 }, (_, index) => `long /${index}`).join("\n");
  expect((await secretsIn(frame("unmasked", many))).unmasked.length).toBeLessThan(40);
});

test("a mapping without secrets has none", async () => {
  const { values } = await secretsIn(frame("secret-0", "security: strict\n"));
  expect(values).toEqual([]);
});

test("a platform's own file may be of any version of YAML", async () => {
  const own =
    "enabled: yes\nmode: 010\nsince: !!timestamp 2020-01-01\n8080: x\npassword: !vault hunter2\n";
  expect((await secretsIn(frame("secret-0", own))).values).toEqual(["hunter2"]);
});

test("a key file that looks like a comment is a secret", async () => {
  const { values } = await secretsIn(frame("secret-0", "#k3y-0123abcd\n"));
  expect(values).toEqual(["#k3y-0123abcd\n"]);
});

test("before the installation nothing is known, and that is said", async () => {
  expect(await parseSecrets("configuration \nsecret-0 \n")).toEqual({
    values: [],
    areComplete: false,
    unmasked: [],
  });
});

test("during the installation there may be more later", async () => {
  const stdout = frame("configuration", "security: strict\n") + frame("status", "running\n");
  expect(await parseSecrets(stdout)).toEqual({ values: [], areComplete: false, unmasked: [] });
});

test("1000 hostile files: texts, or nothing", async () => {
  for (const text of hostileOutputs(47, 1000)) {
    const secrets = await parseSecrets(
      text + frame("configuration", text) + frame("secret-0", text),
    );
    for (const value of secrets?.values ?? []) expect(value).toBeString();
  }
});

/** A value of the configuration for each secret. */
const configurationOf = (secrets: readonly string[]): string =>
  frame("configuration", JSON.stringify({ password: secrets }));
const numbered = (count: number, prefix: string): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test.each([
  ["500 secrets", numbered(500, "secret-")],
  ["a license of 60 kB", ["license ".repeat(7500)]],
])("%s are accepted", async (_, secrets) => {
  expect((await secretsIn(configurationOf(secrets))).values).toEqual(secrets);
});

test.each([
  ["more secrets", configurationOf(numbered(501, "secret-"))],
  ["longer secrets", configurationOf(["license ".repeat(8001)])],
  [
    "secrets in several files",
    frame("secret-0", "x".repeat(40_000)) + frame("secret-1", "y".repeat(40_000)),
  ],
  ["20,000 secrets that begin alike", configurationOf(numbered(20_000, "secret-"))],
  ["10 MB", frame("configuration", "x".repeat(10_000_000))],
  ["10 MB without any file", "x\n".repeat(5_000_000)],
])("%s, which is more than a cluster has, are refused", async (_, stdout) => {
  expect(await parseSecrets(stdout)).toBeUndefined();
});

/** A key of random bytes, such as that of munge, as the frame of a file. */
const keyFrame = (name: string, bytes: Buffer): string => `${name} ${bytes.toString("base64")}\n`;

test("a key that is not text is masked in hexadecimal and base64, with breaks or without", async () => {
  const key = randomBytes(1024);
  const masker = new Masker();
  for (const value of (await secretsIn(keyFrame("secret-0", key))).values) masker.hide(value);
  const hex = key.toString("hex");
  for (const text of [hex, hex.toUpperCase(), key.toString("utf8")])
    expect(masker.text(`key=${text};`)).toBe("key=***;");
  expect(masker.text(`key=${key.toString("base64")};`)).toMatch(/^key=\*\*\*={0,2};$/);
  for (const width of [64, 76]) {
    const lines = key.toString("base64").match(new RegExp(`.{1,${width}}`, "g"))!;
    const masked = masker.text(lines.join("\n")).split("\n");
    expect(masked.slice(0, -1)).toEqual(lines.slice(1).map(() => "***"));
  }
});

test("keys that are not text and too long for that are named", async () => {
  const long = [0, 1].map((number) => keyFrame(`secret-${number}`, randomBytes(3_000))).join("");
  const { values, unmasked } = await secretsIn(long);
  expect(values).toHaveLength(2);
  expect(unmasked).toEqual([expect.stringContaining("not masked in hexadecimal and base64")]);
});
