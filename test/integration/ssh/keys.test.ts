import { describe, expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { utils } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { proveOpenSshReads, readKeyPair } from "../../../src/ssh/own-key.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test.each(["cluster-e2e-x", ""])(
  "OpenSSH accepts generated keys with the comment %j",
  async (comment) => {
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
  },
);

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
      "is not a private key",
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

  test.each(["/dev/null", "/dev/zero"])("%s is refused without reading it", async (path) => {
    expect((await failureOf(readKeyPair(path))).message).toBe(
      `Cannot read the SSH key ${path}: it is not a regular file.`,
    );
  });

  test.each<[string, (text: string) => string]>([
    ["line ends of Windows", (text) => text.replaceAll("\n", "\r\n")],
    ["line ends of old Macs", (text) => text.replaceAll("\n", "\r")],
    ["spaces for its line ends", (text) => text.replaceAll("\n", " ")],
    ["a byte order mark", (text) => `\ufeff${text}`],
    ["blank lines around it", (text) => `\n\n${text}\n \n`],
    ["blank lines and indentation inside", (text) => text.replaceAll("\n", "\n\n    ")],
    ["a comment in front", (text) => `# my key\n${text}`],
    [
      "another text behind",
      (text) => `${text}-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n`,
    ],
  ])("that has %s becomes one that OpenSSH reads", async (_name, spoil) => {
    await using folder = await scratchFolder();
    const own = generateKeyPair("x");
    const path = join(folder.path, "key");
    await writeFile(path, spoil(own.privateKey));
    expect(await readKeyPair(path)).toEqual(own);
  });

  test.each([
    ["ed25519 in PKCS #8", ["genpkey", "-algorithm", "ed25519"]],
    ["RSA in PKCS #8", ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]],
    ["ECDSA in PKCS #8", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]],
    ["ECDSA behind its parameters", ["ecparam", "-name", "secp384r1", "-genkey"]],
  ])("%s becomes one that both OpenSSH and ssh2 read", async (_name, words) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    const copy = join(folder.path, "copy");
    await Bun.$`openssl ${words} -out ${path}`.quiet();
    const { privateKey, publicKey } = await readKeyPair(path);
    await writeFile(copy, privateKey, { mode: 0o600 });
    expect((await Bun.$`ssh-keygen -y -f ${copy}`.text()).trim()).toBe(publicKey);
    const parsed = utils.parseKey(privateKey);
    if (parsed instanceof Error) throw parsed;
    expect(publicKey.split(" ")[1]).toBe(parsed.getPublicSSH().toString("base64"));
  });

  test.each([
    [
      "RSA of 1024 bits",
      ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
      "RSA key of 1024 bits",
    ],
    ["ed448", ["genpkey", "-algorithm", "ed448"], "of a type that nodes don't accept"],
    [
      "of another curve",
      ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
      "of a type that nodes don't accept",
    ],
    [
      "a passphrase in PKCS #8",
      ["genpkey", "-algorithm", "ed25519", "-aes128", "-pass", "pass:x"],
      "has a passphrase",
    ],
    [
      "a passphrase in PEM",
      ["genrsa", "-traditional", "-aes128", "-passout", "pass:x", "2048"],
      "has a passphrase",
    ],
    ["DER", ["genpkey", "-algorithm", "ed25519", "-outform", "DER"], "is not UTF-8 text"],
  ])("%s is refused with its reason", async (_name, words, reason) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    await Bun.$`openssl ${words} >${path}`.quiet();
    const error = await failureOf(readKeyPair(path));
    expect(error.id).toBe("bad-usage");
    expect(error.message).toContain(reason);
  });

  test("DSA in PEM is refused with its reason", async () => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    await Bun.$`openssl genpkey -genparam -algorithm DSA -pkeyopt pbits:1024 -pkeyopt qbits:160 -out ${path}.parameters`.quiet();
    await Bun.$`openssl genpkey -paramfile ${path}.parameters -out ${path}`.quiet();
    expect((await failureOf(readKeyPair(path))).message).toContain("DSA");
  });

  const wire = (text: string): Buffer =>
    Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]);
  const openSshKey = (type: string, cipher: string): string => {
    const head = [
      "openssh-key-v1\0",
      wire(cipher),
      wire("none"),
      wire(""),
      Buffer.from([0, 0, 0, 1]),
    ];
    const publicKey = wire(wire(type).toString("latin1"));
    const content = Buffer.concat([
      ...head.map((part) => Buffer.from(part)),
      publicKey,
      wire("private"),
    ]);
    return `-----BEGIN OPENSSH PRIVATE KEY-----\n${content.toString("base64")}\n-----END OPENSSH PRIVATE KEY-----\n`;
  };
  test.each([
    ["of a security key", openSshKey("sk-ssh-ed25519@openssh.com", "none"), "security key"],
    [
      "of a security key, with a passphrase",
      openSshKey("sk-ssh-ed25519@openssh.com", "aes256-ctr"),
      "security key",
    ],
    ["of DSA in OpenSSH's format", openSshKey("ssh-dss", "none"), "DSA"],
    ["of PuTTY", "PuTTY-User-Key-File-3: ssh-ed25519\r\nEncryption: none\r\n", "PuTTY"],
    ["of SSH.COM", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nAAAA\n", "SSH.COM"],
    ["in UTF-16", Buffer.from(`\ufeff${pem}`, "utf16le"), "not UTF-8"],
    ["without its end", pem.replace(/-----END.*/, ""), "its end is missing"],
    ["with a character that no key has", pem.replace("b3Bl", "b3B!"), "characters that no key has"],
    ["two keys", `${pem}${pem}`, "several private keys"],
    ["longer than any key", `${"# comment\n".repeat(4_000)}${pem}`, "longer than any key"],
  ])("that is %s is refused with its reason", async (_name, text, reason) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "key");
    await writeFile(path, text);
    const error = await failureOf(readKeyPair(path));
    expect(error.id).toBe("bad-usage");
    expect(error.message).toContain(reason);
    expect(error.hint).not.toBe("");
  });

  test("OpenSSH itself reads the copy, or it is refused", async () => {
    await using folder = await scratchFolder();
    const file = join(folder.path, "key");
    const { privateKey, publicKey } = generateKeyPair("x");
    const prove = async (
      environment: NodeJS.ProcessEnv,
      text = privateKey,
      expected = publicKey,
    ): Promise<void> => {
      await writeFile(file, text, { mode: 0o600 });
      return proveOpenSshReads(
        { path: "own", file, publicKey: expected },
        environment,
        new AbortController().signal,
      );
    };
    await prove(process.env);
    await prove({ PATH: folder.path }, "no key");
    expect((await failureOf(prove(process.env, privateKey.replaceAll("\n", "\r\n")))).id).toBe(
      "bad-usage",
    );
    expect(
      (await failureOf(prove(process.env, privateKey, generateKeyPair("x").publicKey))).id,
    ).toBe("bad-usage");
  });
});
