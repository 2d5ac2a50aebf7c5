import { describe, expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { utils } from "ssh2";
import { generateKeyPair, readKeyPair } from "../../../src/ssh/keys.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test.each(["cluster-e2e-x", ""])("OpenSSH accepts generated keys with the comment %j", async (comment) => {
  await using folder = await scratchFolder();
  const pair = generateKeyPair(comment);
  const path = join(folder.path, "key");
  await writeFile(path, pair.privateKey, { mode: 0o600 });
  expect((await Bun.$`ssh-keygen -y -f ${path}`.text()).trim()).toBe(pair.publicKey);
  expect(pair.privateKey).toMatch(
    /^-----BEGIN OPENSSH PRIVATE KEY-----\n([\w+/=]{1,70}\n)+-----END OPENSSH PRIVATE KEY-----\n$/,
  );
  const [type, key, ...others] = pair.publicKey.split(" ");
  expect([type, ...others]).toEqual(comment === "" ? ["ssh-ed25519"] : ["ssh-ed25519", comment]);
  expect(key).toMatch(/^[\w+/]+=*$/);
});

test("ssh2 accepts each of two thousand keys, with leading zeros or without", () => {
  for (let count = 0; count < 2_000; count += 1) {
    const pair = generateKeyPair("x");
    const parsed = utils.parseKey(pair.privateKey);
    if (parsed instanceof Error) throw parsed;
    expect(`ssh-ed25519 ${parsed.getPublicSSH().toString("base64")} x`).toBe(pair.publicKey);
  }
});

describe("a user's own key", () => {
  test.each([
    ["ed25519", ["-t", "ed25519"]],
    ["rsa", ["-t", "rsa", "-b", "2048"]],
    ["rsa in PEM", ["-t", "rsa", "-b", "2048", "-m", "PEM"]],
    ["ecdsa", ["-t", "ecdsa"]],
  ])("%s: the public key is derived", async (_name, type) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    await Bun.$`ssh-keygen -q ${type} -N "" -C me@here -f ${path}`;
    const pair = await readKeyPair(path);
    const [kind, base64] = (await Bun.file(`${path}.pub`).text()).split(" ");
    expect(pair.publicKey).toStartWith(`${kind} ${base64}`);
    expect(pair.privateKey).toBe(await Bun.file(path).text());
  });

  test("gets the newline at its end that OpenSSH requires", async () => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    const { privateKey } = generateKeyPair("x");
    await writeFile(path, privateKey.trimEnd());
    expect((await readKeyPair(path)).privateKey).toBe(privateKey);
  });

  test("with a passphrase is rejected, with a remedy", async () => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    await Bun.$`ssh-keygen -q -t ed25519 -N "open sesame" -f ${path}`;
    const error = await failureOf(readKeyPair(path));
    expect(error.id).toBe("bad-usage");
    expect(error.message).toContain("passphrase");
    expect(error.hint).toContain("ssh-keygen -p -N '' -f COPY");
  });

  const pem = generateKeyPair("x").privateKey;
  test.each([
    ["public", generateKeyPair("x").publicKey, "is not a private key"],
    ["empty", "", "is not a private key"],
    ["broken", pem.slice(0, 150), "Cannot use the SSH key"],
    [
      "a public one in PEM",
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n",
      "Cannot use the SSH key",
    ],
    ["not there", undefined, "does not exist"],
  ])("that is %s is rejected", async (_name, text, reason) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    if (text !== undefined) await writeFile(path, text);
    const error = await failureOf(readKeyPair(path));
    expect(error.id).toBe("bad-usage");
    expect(error.message).toContain(path);
    expect(error.message).toContain(reason);
  });
});
