import { expect, test } from "bun:test";
import { ClusterError, messageOf, OwnError, quoted } from "../../src/errors.ts";
import { mapOutside, mapTexts, outside, unmarked } from "../../src/outside-text.ts";

/** Shows which parts count as outside text. */
const shown = (text: string): string => mapOutside(text, (part) => `<${part}>`);
const begin = outside("x")[0]!;
const end = outside("x").at(-1)!;

test("what a message quotes is outside text, and the rest is ours", () => {
  expect(shown(`node master_0: ${outside("no disk")} (${outside("28")}).`)).toBe(
    "node master_0: <no disk> (<28>).",
  );
  expect(shown("ours")).toBe("ours");
  expect(shown("")).toBe("");
});

test("a message that is quoted as a whole is marked once", () => {
  expect(shown(outside(`it said ${outside("no")}!`))).toBe("<it said no!>");
});

test("marks that outside text brings along are removed", () => {
  expect(shown(`says ${outside(`a${end}forged${begin}b`)}.`)).toBe("says <aforgedb>.");
});

test("lines stay marked one by one, and are masked together", () => {
  const text = outside("one\n\n  two\n");
  expect(shown(`${text}ours`)).toBe("<one\n\n  two>\nours");
  for (const line of text.split("\n").filter((each) => each !== ""))
    expect(shown(line)).toMatch(/^ *<\w+>$/);
});

test("a part that has lost one of its marks counts as outside text", () => {
  const text = `ours ${outside("secret")}`;
  expect(shown(`${text.slice(0, -3)} ours`)).toBe("ours <secr ours>");
  expect(shown(`${outside("secret").slice(3)} ours`)).toBe("<cret> ours");
  expect(shown(`${outside("one").slice(2)}, ours, ${outside("two").slice(0, -1)}`)).toBe(
    "<ne>, ours, <two>",
  );
});

test("in data, texts change, and keys don't", () => {
  const data = {
    at: new Date(0),
    never: new Date(Number.NaN),
    big: 12n,
    list: ["ours", { [outside("key")]: outside("text") }],
    error: new Error("theirs"),
    set: new Set([outside("text")]),
    map: new Map([["key", outside("text")]]),
    nothing: null,
    yes: true,
  };
  expect(mapTexts(data, shown)).toEqual({
    at: "1970-01-01T00:00:00.000Z",
    never: null,
    big: "12",
    list: ["ours", { [outside("key")]: "<text>" }],
    error: "<theirs>",
    set: ["<text>"],
    map: { key: "<text>" },
    nothing: null,
    yes: true,
  });
});

test("an error shows no marks to programs, and keeps them for another error about it", () => {
  const error = new ClusterError("cloud-failed", `The API said ${outside("no")}.`, {
    hint: `Ask ${outside("them")}.`,
    facts: { code: outside("No"), lines: [outside("a")], nested: { text: outside("b"), when: 5 } },
  });
  expect(error.message).toBe("The API said no.");
  expect(error.hint).toBe("Ask them.");
  expect(error.facts).toEqual({ code: "No", lines: ["a"], nested: { text: "b", when: 5 } });
  const { hint, facts } = ClusterError.marked(error);
  expect(shown(messageOf(error))).toBe("The API said <no>.");
  expect([shown(hint!), mapTexts(facts, shown)]).toEqual([
    "Ask <them>.",
    { code: "<No>", lines: ["<a>"], nested: { text: "<b>", when: 5 } },
  ]);
});

test("the message of an error that isn't ours is outside text, except a system call's, which names only our own paths", () => {
  expect(shown(messageOf(new TypeError("theirs")))).toBe("<theirs>");
  expect(shown(messageOf("thrown"))).toBe("<thrown>");
  expect(shown(messageOf(new Error(`in ${outside("file")}`)))).toBe("in <file>");
  expect(shown(messageOf(new OwnError("ours")))).toBe("ours");
  const missing = Object.assign(new Error("ENOENT: no such file or directory, open '/x'"), {
    code: "ENOENT",
    syscall: "open",
  });
  expect(shown(messageOf(missing))).toBe("ENOENT: no such file or directory, open '/x'");
});

test("a quoted value is outside text", () => {
  expect(shown(quoted('a"b'))).toBe(String.raw`"<a\"b>"`);
  expect(unmarked(quoted("x".repeat(101)))).toBe(`"${"x".repeat(100)}…"`);
});
