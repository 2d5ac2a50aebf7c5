import { expect, test } from "bun:test";
import { maskUrl, urlSecrets } from "../../../src/system/mask-url.ts";

test.each([
  ["https://host.example/a/b.sh", "https://host.example/a/b.sh"],
  ["https://host.example/a.sh?X-Signature=abcdef0123", "https://host.example/a.sh?***"],
  ["https://user:hunter2@host.example:8443/a.sh", "https://***@host.example:8443/a.sh"],
  ["https://ghp_token@host.example/a.sh#part", "https://***@host.example/a.sh#***"],
  ["ftp://user:hunter2@host.example/a?b", "ftp://***@host.example/a?***"],
  ["https://user:hun@ter2@[bad/a?secret", "https://***@[bad/a?***"],
  ["/relative/path?token=secret", "/relative/path?***"],
  ["/relative/path", "/relative/path"],
  ["?token=secret", "?***"],
  ["//user:hunter2@host.example/a", "//***@host.example/a"],
  ["//@host.example/a", "//***@host.example/a"],
  ["me@host.example//a", "me@host.example//a"],
  ["x:@", "x:@"],
  ["me:hunter2@proxy.test:3128", "***@proxy.test:3128"],
  ["me:hun@ter2@proxy.test:3128/a", "***@proxy.test:3128/a"],
  ["me@proxy.test:3128", "me@proxy.test:3128"],
])("maskUrl shows %s as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});

test("the secrets of a URL are its query, its long values and its password, in both spellings", () => {
  const secrets = urlSecrets("https://me:p%40ss@host.example/a.sh?v=1&signature=abc%2Bdef%3D%3D");
  for (const secret of [
    "v=1&signature=abc%2Bdef%3D%3D",
    "abc+def==",
    "abc%2Bdef%3D%3D",
    "p%40ss",
    "p@ss",
  ])
    expect(secrets).toContain(secret);
  expect(secrets).not.toContain("1");
  expect(secrets).not.toContain("me");
});

test("a query value of eight characters is a secret, and a shorter one is none", () => {
  const secrets = urlSecrets("https://host.example/a.sh?a=12345678&b=1234567");
  expect(secrets).toContain("12345678");
  expect(secrets).not.toContain("1234567");
});

test("a user name without a password is a token", () => {
  expect(urlSecrets("https://ghp_token@host.example/a.sh")).toContain("ghp_token");
});

test("a URL that shows nothing secret has no secrets", () => {
  expect(urlSecrets("https://host.example/a.sh")).toEqual([]);
});
