import { expect, test } from "bun:test";
import { fit, LiveArea } from "../../../../src/cli/terminal/live-area.ts";

const same = (text: string): string => text;

/** What a terminal of so many rows would show of what was written to it. */
class FakeScreen {
  readonly columns = 20;
  readonly rows = 5;
  readonly lines: string[] = [];

  write(text: string): void {
    const [before = "", after] = text.split("A\r\x1b[J");
    const rest = after ?? before;
    if (after !== undefined) this.lines.length -= Number(before.replace("\x1b[", ""));
    expect(rest).not.toContain("\x1b");
    this.lines.push(...rest.split("\n").slice(0, -1));
  }
}

test("lines are drawn over again, and what is written stays above them", () => {
  const screen = new FakeScreen();
  const area = new LiveArea(screen);
  area.draw([{ mark: "*", paint: same, text: "one" }]);
  area.draw([
    { mark: "*", paint: same, text: "one" },
    { mark: "*", paint: same, text: "two" },
  ]);
  area.writeAbove("a note\n");
  expect(screen.lines).toEqual(["a note", "* one", "* two"]);
  area.draw([{ mark: "*", paint: same, text: "three" }]);
  expect(screen.lines).toEqual(["a note", "* three"]);
  area.clear();
  area.clear();
  expect(screen.lines).toEqual(["a note"]);
});

test("lines are cut to the terminal's width and height", () => {
  const screen = new FakeScreen();
  const area = new LiveArea(screen);
  area.draw(
    Array.from({ length: 9 }, (_, index) => ({ mark: "*", paint: same, text: `${index} ${"long ".repeat(9)}` })),
  );
  expect(screen.lines).toEqual(["* 6 long long long…", "* 7 long long long…", "* 8 long long long…"]);
});

test.each([
  ["short", "short"],
  ["exactly ten", "exactly t…"],
  ["日本語日本語", "日本語日…"],
  ["a\nb\tc\x1b", "a b c\uFFFD"],
])("%j fits ten columns as %j", (text, expected) => {
  expect(fit(text, 10)).toBe(expected);
});
