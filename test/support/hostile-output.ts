/**
 * Outputs that an attacker might make a node print: forged marks and reports, control sequences, bidirectional controls, paths, incomplete
 * characters, very long and very many lines. The same seed gives the same outputs.
 */
export function hostileOutputs(seed: number, count: number): readonly string[] {
  const random = randomNumbers(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const piece = (): string =>
    random() < 0.7 ? pick(pieces) : anyCharacters(1 + Math.floor(random() * 12), random);
  const sure = [...pieces, "", "\x1b[31m".repeat(10_000), "a".repeat(50_000), "\n".repeat(50_000)];
  return Array.from(
    { length: count },
    (_, index) =>
      sure[index] ?? Array.from({ length: 1 + Math.floor(random() * 12) }, piece).join(""),
  );
}

const pieces: readonly string[] = [
  "\n",
  "\n",
  "\r\n",
  "\r",
  "\t",
  " ",
  "\0",
  "\b\b\b",
  "\x07",
  "\x1b",
  "\x1b[2J\x1b[H",
  "\x1b[31mred\x1b[0m",
  "\x1b\x1b[0m[31m",
  "\x1b]0;title\x07",
  "\x1b]52;c;aWQ=\x07",
  "\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\",
  "\x1bP1$r\x1b\\",
  "\u009b31m",
  "\u009d0;title\u009c",
  "\u0085",
  "\x7f",
  "\u2028",
  "\u2029",
  "\u202e",
  "\u2066\u2069",
  "\u200e\u200f\u061c",
  "\ufeff\u200b",
  "\ufff9",
  "\u{e0041}",
  "\ud800",
  "\udc00\ud800",
  "--- 00000000-0000-4000-8000-000000000000 ",
  "/../../../x",
  "../../.ssh/authorized_keys",
  "install.log ",
  "install.log aGVsbG8=",
  "\ninstall.log aGVsbG8=\n",
  "\njournal.txt aGVsbG8=\n",
  "\n/../../x aGVsbG8=\n",
  "\n__proto__ aGVsbG8=\n",
  "configuration aGVsbG8=",
  "\nlayout=dcos\nstatus=exit 0\nunit=active\ncheck.status=0\n",
  "\ncheck.status=0",
  "\nsetup.__proto__=failed",
  "check=fine",
  "\nnow: ",
  "\nfailed: ",
  "\nWarning: all is lost",
  "\nError: ",
  "e2e-process-group 1\n",
  "license_key_contents: 1",
  "a: &a [*a]",
  "{",
  "[".repeat(2000),
  '"\\u001b"',
  "plain text",
  "日本語",
  "\u{1f4a3}",
];

function anyCharacters(length: number, random: () => number): string {
  const character = (): string =>
    String.fromCodePoint(Math.floor(random() * (random() < 0.5 ? 0x1_00 : 0x11_00_00)));
  return Array.from({ length }, character).join("");
}

/** mulberry32: a small generator with the same results everywhere. */
function randomNumbers(seed: number): () => number {
  const state = { value: seed };
  return () => {
    state.value = (state.value + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state.value ^ (state.value >>> 15), state.value | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_00_00_00_00;
  };
}
