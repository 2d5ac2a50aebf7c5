import { expect, test } from "bun:test";
import { hostileOutputs } from "../../support/hostile-output.ts";
import { Masker } from "../../../src/system/masker.ts";

const hiding = (...secrets: readonly string[]): Masker => {
  const masker = new Masker();
  for (const secret of secrets) masker.hide(secret);
  return masker;
};

const secret = `p@ss 'w"ord/+ü&<x>`;

test.each([
  ["as it is", secret],
  ["in a URL", encodeURIComponent(secret)],
  ["in a strict URL", encodeURIComponent(secret).replaceAll("'", "%27")],
  [
    "in a URL with lower-case escapes",
    encodeURIComponent(secret).replaceAll(/%../g, (code) => code.toLowerCase()),
  ],
  ["in a form", encodeURIComponent(secret).replaceAll("%20", "+")],
  ["in JSON", JSON.stringify(secret).slice(1, -1)],
  ["in Go's JSON", "p@ss 'w\\\"ord/+ü\\u0026\\u003cx\\u003e"],
  ["in Python's JSON", String.raw`p@ss 'w\"ord/+\u00fc&<x>`],
  ["in Python's URL", "p%40ss%20%27w%22ord/%2B%C3%BC%26%3Cx%3E"],
  ["as Go's password in a URL", "p%40ss%20%27w%22ord%2F+%C3%BC&%3Cx%3E"],
  [
    "as a password in a browser's URL",
    new URL(`http://u:${encodeURIComponent(secret)}@h`).password,
  ],
  ["in a URI", encodeURI(secret)],
  ["in HTML", `p@ss &#39;w&quot;ord/+ü&amp;&lt;x&gt;`],
  ["in Python's HTML", `p@ss &#x27;w&quot;ord/+ü&amp;&lt;x&gt;`],
  ["in XML", `p@ss 'w"ord/+ü&amp;&lt;x&gt;`],
  ["in a shell's single quotes", secret.replaceAll("'", String.raw`'\''`)],
  ["in base64", Buffer.from(secret).toString("base64")],
])("a secret is masked %s", (_, shape) => {
  expect(hiding(secret).text(`before ${shape} after`)).toBe("before *** after");
});

test.each(["u:", "us:", "usr:", "user:"])(
  "a secret is masked in the base64 of a login %s",
  (user) => {
    const encoded = Buffer.from(`${user}correct horse battery`).toString("base64");
    const masked = hiding("correct horse battery").text(encoded);
    expect(masked).toContain("***");
    // What remains is of the user's name and at most a few bits of the secret's ends.
    const remains = Buffer.from(masked.replace("***", ""), "base64").toString();
    expect(remains).not.toMatch(/orrec|horse|batter/);
  },
);

test("every line of a secret with several lines is masked, and a carriage return changes nothing", () => {
  const key = "-----BEGIN KEY-----\nabcdefgh\nijklmnop\n-----END KEY-----\n";
  expect(hiding(key).text("got abcdefgh\r\nand ijklmnop")).toBe("got ***\r\nand ***");
  expect(hiding(key.replaceAll("\n", "\r\n")).text("got abcdefgh")).toBe("got ***");
  expect(hiding(key).text(`all: ${key}.`)).toBe("all: ***.");
});

test("a long secret's base64 is masked where it is broken into lines", () => {
  const long = "0123456789abcdefghijklmnopqrstuvwxyz".repeat(4);
  const encoded = Buffer.from(long).toString("base64");
  for (const width of [64, 76]) {
    const lines = encoded.match(new RegExp(`.{1,${width}}`, "g"))!;
    const masked = hiding(long).text(lines.join("\n"));
    expect(masked.split("\n").slice(0, -1)).toEqual(lines.slice(1).map(() => "***"));
  }
});

test("a short secret is masked where it stands alone", () => {
  expect(hiding("abc").text("abc=abc, abcdef, xabc, -abc-")).toBe("***=***, abcdef, xabc, -***-");
  expect(hiding("--a", "-a").text("x--a")).toBe("x-***");
});

test("a secret of four characters is masked inside words, and in every encoding", () => {
  const masker = hiding("a/bc");
  expect(masker.text("xa/bcx, a%2Fbc")).toBe("x***x, ***");
  // Shorter ones would be found everywhere.
  expect(hiding("a/b").text("xa/bx, a%2Fb, YS9i")).toBe("xa/bx, a%2Fb, YS9i");
});

test("spaces and line breaks around a secret, or around its lines, change nothing", () => {
  expect(hiding("abc\n").text("abc!")).toBe("***!");
  expect(hiding("key:\n  abcdefgh\n  ijkl\n").text("abcdefgh, ijkl")).toBe("***, ***");
});

test("a secret that begins where another ends is masked with it", () => {
  expect(hiding("abcd", "dxyz").text("abcdxyz dxyz")).toBe("*** ***");
});

test("in base64, everything is masked that the neighbours of the secret don't change", () => {
  const [hidden, masker] = ["correct horse battery", hiding("correct horse battery")];
  const encoded = (before: number, after: number, byte: number): string =>
    Buffer.concat([
      Buffer.alloc(before, byte),
      Buffer.from(hidden),
      Buffer.alloc(after, byte),
    ]).toString("base64");
  for (const before of [0, 1, 2, 3, 4, 5]) {
    for (const after of [3, 4, 5]) {
      const [text, other] = [encoded(before, after, 0), encoded(before, after, 0xff)];
      const isOwn = Array.from(
        text,
        (character, index) => character !== "=" && character === other[index],
      );
      const [first, last] = [isOwn.indexOf(true), isOwn.lastIndexOf(true)];
      expect(masker.text(text)).toBe(`${text.slice(0, first)}***${text.slice(last + 1)}`);
    }
  }
});

test("an empty secret, or one of white space alone, hides nothing", () => {
  expect(hiding("", "\n", " ").text("all of this:\n- stays")).toBe("all of this:\n- stays");
});

test("the longer of two secrets that begin alike goes whole", () => {
  expect(hiding("secret", "secret-and-more").text("secret-and-more secret")).toBe("*** ***");
});

test("characters that mean something in a pattern mean nothing in a secret", () => {
  expect(hiding("a.c+[x]$^").text("a.c+[x]$^ abcc[x]")).toBe("*** abcc[x]");
});

test("2000 hostile texts: a secret anywhere in them is masked, however many others there are", () => {
  const masker = new Masker();
  const hidden = [
    "s3cret-word",
    "s3cret-word-and-more",
    "a+b/c==",
    "line one\nline two",
    "zwei\u00e9",
  ];
  for (const each of hidden) masker.hide(each);
  for (let index = 0; index < 500; index += 1) masker.hide(`other-${index}-secret`);
  hostileOutputs(5, 2000).forEach((text, index) => {
    const inserted = hidden[index % hidden.length]!;
    const masked = masker.text(`${text}${inserted}${text}`);
    expect(masked).toBe(`${masker.text(text)}***${masker.text(text)}`);
  });
});

/** Attackers choose both the secrets and the texts. With a comparison per secret, or per character of one, each of these takes hours. */
const megabytes = 10_000_000;
const alike = "alike-".repeat(50);
test.each([
  ["that begin alike", Array.from({ length: 500 }, (_, index) => `${alike}${index}`), alike],
  ["that end alike", Array.from({ length: 500 }, (_, index) => `${index}${alike}`), alike],
  ["that repeat one character", ["a".repeat(64_000), `${"a".repeat(64_000)}b`], "a"],
  ["that are short", ["a", "b", "ab", "-a"], "-ab "],
  [
    "of many lines",
    [Array.from({ length: 4000 }, (_, index) => `l${index}é`).join("\n")],
    "l1é\nl2",
  ],
])("10 MB of text are masked with the most secrets %s", (_, secrets, part) => {
  const text = part.repeat(megabytes / part.length);
  const masked = hiding(...secrets).text(`${text}${secrets[0]} end`);
  expect(masked).toEndWith("*** end");
});
