/**
 * Texts that an attacker might put into a tag, a label, a file or a node's output. The same seed always gives the same
 * texts, so that a failure can be reproduced. Each test has its own seed.
 */
export function hostileTexts(seed: number, count: number): readonly string[] {
  const random = randomNumbers(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const attack = (): string => pick(attacks);
  const forms: readonly (() => string)[] = [
    () => attack(),
    () => pick(stems) + attack(),
    () => attack() + pick(stems),
    () => insertInto(pick(stems), attack(), random),
    () => pick(stems) + attack() + pick(stems),
    () => Array.from({ length: 1 + Math.floor(random() * 6) }, attack).join(""),
    () =>
      pick(stems)
        .split("")
        .map((letter) => lookAlikes.get(letter) ?? letter)
        .join(""),
    () => anyCharacters(1 + Math.floor(random() * 80), random),
    () => pick(stems) + anyCharacters(1 + Math.floor(random() * 4), random),
  ];
  // First each attack by itself, and a few very long ones, whatever the seed.
  const sure = [
    ...attacks,
    ...stems.map((stem) => `${stem}\n`),
    "a".repeat(50_000),
    "../".repeat(17_000),
  ];
  return Array.from({ length: count }, (_, index) => sure[index] ?? pick(forms)());
}

/** Characters that a terminal may interpret or hide. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Returns all texts in a value, at any depth. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** Texts that are valid in some places: an attack hides best in one of these. */
const stems: readonly string[] = [
  "default",
  "0123456789abcdef",
  "default-0123456789abcdef",
  "master",
  "public_agent",
  "master=1 agent=2 public_agent=1",
  "enterprise",
  "debian-12",
  "image registry.example.com/node:1",
  "https",
  "admin",
  "192.0.2.1",
  "2026-01-01T00:00:00Z",
  "i-0123456789abcdef0",
  "us-west-2",
  "65535",
  "0",
];

const attacks: readonly string[] = [
  "",
  " ",
  ".",
  "..",
  "/",
  "/etc/passwd",
  "/../../../.ssh",
  "x/../../../.ssh",
  "../../../../root/.ssh/authorized_keys",
  "..\\..\\windows",
  "%2e%2e%2f",
  "~",
  "~/.ssh",
  "\n",
  "\r",
  "\r\n",
  "\t",
  "\0",
  "\u0000/../x",
  "\u000B",
  "\f",
  "\u0085",
  "\u2028",
  "\u2029",
  "\n  ProxyCommand touch /tmp/owned\n",
  "\nHost *\n  ProxyCommand sh -c 'id >/tmp/owned'\n",
  "\r  LocalCommand id",
  "-oProxyCommand=id",
  "--privileged",
  "; id",
  "$(id)",
  "`id`",
  "${HOME}",
  "%h",
  '"',
  "'",
  "\\",
  "\u001B[2J",
  "\u001B[31mred\u001B[0m",
  "\u001B]0;title\u0007",
  "\u001B]52;c;aWQ=\u0007",
  "\u001B]8;;https://example.com\u001B\\link\u001B]8;;\u001B\\",
  "\u001BP1$r\u001B\\",
  "\u009B31m",
  "\u009D0;title\u009C",
  "\b\b\b",
  "\u007F",
  "\u202E",
  "\u202Egnp.exe",
  "\u2066\u2069",
  "\u200B",
  "\u200D",
  "\uFEFF",
  "\u00A0",
  "\uD800",
  "\uDC00\uD800",
  "\u0430dmin",
  "\uFF11\uFF12",
  "\u0661\u0662",
  "\uFF0E\uFF0E\uFF0F",
  "\u2025\u2215",
  "cafe\u0301",
  "\u{1F4A3}",
  "__proto__",
  "constructor",
  "toString",
  "null",
  "undefined",
  "NaN",
  "Infinity",
  "-1",
  "+1",
  "1e3",
  "0x10",
  "1.5",
  "007",
  "9".repeat(400),
  "0x7f.1",
  "127.1",
  "::1",
  "fe80::1%eth0",
  "192.0.2.1/24",
  "256.0.0.1",
  "0000-00-00T00:00:00Z",
  "2026-13-45T99:99:99Z",
  '{"schemaVersion":1}',
  "[]",
];

/** Letters and digits of other scripts that look like ours. */
const lookAlikes: ReadonlyMap<string, string> = new Map([
  ["a", "\u0430"],
  ["c", "\u0441"],
  ["e", "\u0435"],
  ["i", "\u0456"],
  ["o", "\u043E"],
  ["p", "\u0440"],
  ["s", "\u0455"],
  ["0", "\uFF10"],
  ["1", "\u0661"],
  ["2", "\uFF12"],
  ["-", "\u2010"],
  [".", "\u2024"],
  ["_", "\uFF3F"],
  ["=", "\uFF1D"],
  [" ", "\u00A0"],
]);

function insertInto(stem: string, attack: string, random: () => number): string {
  const place = Math.floor(random() * (stem.length + 1));
  return stem.slice(0, place) + attack + stem.slice(place);
}

/** Random characters of all of Unicode. Half of them are among the first 256, where the control characters are. */
function anyCharacters(length: number, random: () => number): string {
  return Array.from({ length }, () =>
    String.fromCodePoint(Math.floor(random() * (random() < 0.5 ? 0x1_00 : 0x11_00_00))),
  ).join("");
}

/** mulberry32: a small generator with the same results everywhere. */
function randomNumbers(seed: number): () => number {
  const state = { value: seed >>> 0 };
  return () => {
    state.value = (state.value + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state.value ^ (state.value >>> 15), state.value | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_00_00_00_00;
  };
}
