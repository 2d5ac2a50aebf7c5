import { expect, test } from "bun:test";
import { withoutPrivateKeys } from "../../../src/system/private-keys.ts";

const lines = [
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
  "A".repeat(64),
  "s3cretEnd==",
];
const marksOf = (kind: string) =>
  [`-----BEGIN ${kind}PRIVATE KEY-----`, `-----END ${kind}PRIVATE KEY-----`] as const;
const leaks = (text: string): boolean =>
  /MIIE|AAAA|s3cret|TUlJ|QUFB|czNj/.test(withoutPrivateKeys(text));

test("a PGP key is masked", () => {
  const [begin, end] = ["BEGIN", "END"].map((word) => `-----${word} PGP PRIVATE KEY BLOCK-----`);
  expect(withoutPrivateKeys(`${begin}\n\n${lines.join("\n")}\n${end}`)).toBe(`${begin}***${end}`);
});

test.each(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])(
  "a %sPRIVATE KEY is masked, and what is around it stays",
  (kind) => {
    const [begin, end] = marksOf(kind);
    const text = `before\n${begin}\n${lines.join("\n")}\n${end}\nafter\n`;
    expect(withoutPrivateKeys(text)).toBe(`before\n${begin}***${end}\nafter\n`);
  },
);

const [begin, end] = marksOf("");

test.each([
  [
    "with a journal's words before each line",
    [begin, ...lines, end].map((line) => `Nov 27 10:00:00 host app[7]: ${line}`).join("\n"),
  ],
  ["in one line of JSON", `{"key": "${[begin, ...lines, end].join("\\n")}"}`],
  ["with Windows line endings", [begin, ...lines, end].join("\r\n")],
  ["whose end is missing", `x\n${begin}\n${lines.join("\n")}`],
  ["whose beginning is missing", `${lines.join("\n")}\n${end}\nx`],
  [
    "whose beginning is missing, in a journal",
    [...lines, end].map((line) => `host app[7]: ${line}`).join("\n"),
  ],
  ["whose beginning is missing, in one line of JSON", `{"key": "${[...lines, end].join("\\n")}"}`],
  ["whose beginning is missing, in one line", [...lines, end].join(" ")],
  ["in base64 once more", `client-key-data: ${btoa([begin, ...lines, end].join("\n"))}`],
  ["that begins twice", `${begin}\n${lines[0]}\n${begin}\n${lines.join("\n")}\n${end}\n`],
])("a key %s is masked", (_, text) => {
  expect(leaks(text)).toBe(false);
  expect(withoutPrivateKeys(text)).toContain("***");
});

test("a key without a beginning hides no other lines, and public keys and certificates stay", () => {
  const log = "10:00 started the server with all its parts\n10:01 done\n";
  expect(withoutPrivateKeys(`${log}${lines.join("\n")}\n${end}\n`)).toStartWith(log);
  const certificate = `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\n`;
  expect(withoutPrivateKeys(certificate)).toBe(certificate);
  expect(withoutPrivateKeys(btoa(certificate))).toBe(btoa(certificate));
  expect(withoutPrivateKeys(`${begin}\n${"x\n".repeat(40_000)}last words`)).toEndWith("last words");
});

test.each([
  begin,
  end,
  `${begin}\n`,
  `\n${end}`,
  `${"A".repeat(60)}\n${end}`,
  "-----BEGIN ",
  btoa(begin),
  `${btoa("-----BEGIN X")}\n${"A".repeat(60)}\n`,
  `${"A".repeat(70)}\n`,
])("10 MB of %j take linear time", (piece) => {
  const text = piece.repeat(Math.ceil(1e7 / piece.length));
  expect(withoutPrivateKeys(text).length).toBeGreaterThan(0);
});
