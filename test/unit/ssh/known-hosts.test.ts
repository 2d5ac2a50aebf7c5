import { expect, test } from "bun:test";
import { join } from "node:path";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts, parseKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { failureOf } from "../../support/failure-of.ts";
import { hostileTexts } from "../../support/hostile-text.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const key = generateKeyPair("").publicKey;

test("hosts are read with and without a port", () => {
  const names = parseKnownHosts(`192.0.2.1 ${key}\n[127.0.0.1]:4022 ${key}\n`).map(([name]) => name);
  expect(names).toEqual(["192.0.2.1", "[127.0.0.1]:4022"]);
});

test("no line becomes a pattern, a mark or a list, or anything that would be another line when it is written again", () => {
  for (const text of ["@cert-authority", "*", "!192.0.2.1", "a,b", "|1|x|y", ...hostileTexts(41, 5000)]) {
    for (const [name, found] of [...parseKnownHosts(`${text} ${key}\n`), ...parseKnownHosts(`192.0.2.1 ${text}\n`)]) {
      expect(name).toMatch(/^[A-Za-z0-9.:[\]-]+$/);
      expect(found.toString("base64")).toMatch(/^[A-Za-z0-9+/]+=*$/);
    }
  }
});

test("host keys that can't be read are a failure, and missing ones are none", async () => {
  await using folder = await scratchFolder();
  expect(await createKnownHosts(join(folder.path, "none")).expected("192.0.2.1", 22)).toBeUndefined();
  const failure = await failureOf(createKnownHosts(folder.path).expected("192.0.2.1", 22));
  expect(failure.message).toContain("EISDIR");
});
