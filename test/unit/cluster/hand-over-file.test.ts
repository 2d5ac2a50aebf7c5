import { createHash } from "node:crypto";
import { expect, test } from "bun:test";
import { type HandOver, handOverText, parseHandOver } from "../../../src/cluster/export-cluster.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { failureOf } from "../../support/failure-of.ts";
import { wireKey } from "../../support/ssh-options.ts";

const key = generateKeyPair("cluster-e2e-nightly");
const hostKeys = [generateKeyPair("a"), generateKeyPair("b")].map(({ publicKey }) =>
  wireKey(publicKey),
);
const handOver: HandOver = {
  clusterId: "nightly",
  creationId: "0123456789abcdef",
  region: "us-west-2",
  privateKey: key.privateKey,
  hostKeys: new Map([
    ["203.0.113.1", hostKeys[0]!],
    ["[127.0.0.1]:2222", hostKeys[1]!],
  ]),
};
const text = handOverText(handOver);

/** The file with some of its members replaced, and a checksum that fits. */
function changed(changes: Readonly<Record<string, unknown>>): string {
  const { sha256: _, ...content } = {
    ...(JSON.parse(text) as Record<string, unknown>),
    ...changes,
  };
  return JSON.stringify({
    ...content,
    sha256: createHash("sha256").update(JSON.stringify(content)).digest("hex"),
  });
}

const refusal = async (given: string): Promise<string> => {
  const { id, message } = await failureOf(parseHandOver(given, "x.json"));
  return `${id}: ${message}`;
};

test("what was written is read, whatever its white space", async () => {
  expect(await parseHandOver(text, "x.json")).toEqual(handOver);
  expect(await parseHandOver(JSON.stringify(JSON.parse(text)), "x.json")).toEqual(handOver);
  expect(await parseHandOver(text.replaceAll("\n", "\r\n"), "x.json")).toEqual(handOver);
});

test.each([
  ["nothing", ""],
  ["another text", "ssh-ed25519 AAAA"],
  ["another document", '{"clusterId":"nightly"}'],
  ["a list", "[1]"],
  ["the first half", text.slice(0, text.length / 2)],
  ["all but the end", text.trimEnd().slice(0, -1)],
])("%s is not an export", async (_, given) => {
  expect(await refusal(given)).toBe(
    "bad-usage: x.json was not written by the export command, or only a part of it is there.",
  );
});

test.each([
  [0, "an older"],
  [undefined, "an older"],
  ["1", "an older"],
  [2, "a newer"],
])("an export in format %p is refused", async (formatVersion, age) => {
  expect(await refusal(changed({ formatVersion }))).toBe(
    `bad-usage: x.json was exported by ${age} version of this program, in another format.`,
  );
});

test("one changed character is found anywhere", async () => {
  const { clusterId, region, privateKey } = handOver;
  for (const part of [
    clusterId,
    region,
    handOver.creationId,
    privateKey.slice(60, 80),
    "203.0.113.1",
  ]) {
    const given = text.replace(part, `${part.slice(0, -1)}${part.endsWith("A") ? "B" : "A"}`);
    expect(given).not.toBe(text);
    expect(await refusal(given)).toBe("bad-usage: x.json is damaged: its checksum is wrong.");
  }
});

test.each([
  [{ clusterId: "../../x" }, "it does not name a cluster"],
  [{ creationId: "0" }, "it does not name a cluster"],
  [{ region: "../us-west-2" }, "it does not name a cluster"],
  [{ privateKey: key.publicKey }, "it has no usable private key"],
  [{ privateKey: "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n" }, "it has no usable private key"],
  [{ privateKey: 1 }, "it has no usable private key"],
  [{ knownHosts: [] }, "it has no usable host keys"],
  [{ knownHosts: "203.0.113.1 ssh-ed25519 AAAA" }, "it has no usable host keys"],
  [{ knownHosts: ["@cert-authority * ssh-ed25519 AAAA"] }, "it has no usable host keys"],
  [{ knownHosts: ["203.0.113.1 ssh-rsa AAAA"] }, "it has no usable host keys"],
  [{ knownHosts: [7] }, "it has no usable host keys"],
  [
    { knownHosts: [`203.0.113.1 ${key.publicKey}`, "203.0.113.2 ssh-rsa AAAA"] },
    "it has no usable host keys",
  ],
])("values are parsed even if the checksum fits: %j", async (changes, reason) => {
  expect(await refusal(changed(changes))).toBe(`bad-usage: x.json is damaged: ${reason}.`);
});

test.each(["-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n", "age-encryption.org/v1\n-> X25519 x\n"])(
  "an encrypted file is recognized: %j",
  async (given) => {
    const { message, hint } = await failureOf(parseHandOver(given, "x.age"));
    expect(message).toBe("x.age is encrypted with age.");
    expect(hint).toContain("Decrypt it with age");
  },
);
