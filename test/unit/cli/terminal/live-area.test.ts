import { expect, test } from "bun:test";
import { fit, LiveArea } from "../../../../src/cli/terminal/live-area.ts";
import { FakeScreen } from "./fake-screen.ts";

const same = (text: string): string => text;

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
  area.writeAbove("another\n");
  expect(screen.lines).toEqual(["a note", "another"]);
});

test("nothing is written while nothing changes", () => {
  const screen = new FakeScreen();
  const area = new LiveArea(screen);
  for (let times = 0; times < 3; times += 1) area.draw([{ mark: "*", paint: same, text: "one" }]);
  expect(screen.written).toEqual(["* one\n"]);
});

test("lines are cut to the terminal's width and height", () => {
  const screen = new FakeScreen();
  const area = new LiveArea(screen);
  area.draw(
    Array.from({ length: 9 }, (_, index) => ({
      mark: "*",
      paint: same,
      text: `${index} ${"long ".repeat(9)}`,
    })),
  );
  expect(screen.lines).toEqual([
    "* 6 long long long…",
    "* 7 long long long…",
    "* 8 long long long…",
  ]);
});

test.each([
  [{ rows: 5 }, ["* 2", "* 3", "* 4"]],
  [{ rows: 3 }, ["* 4"]],
  [{ rows: 1 }, ["* 4"]],
])("of five lines, a screen of %j shows %j", (size, expected) => {
  const screen = new FakeScreen(size);
  new LiveArea(screen).draw(
    ["0", "1", "2", "3", "4"].map((text) => ({ mark: "*", paint: same, text })),
  );
  expect(screen.lines).toEqual(expected);
});

test("on a very narrow screen, ten columns are still used", () => {
  const screen = new FakeScreen({ columns: 3 });
  new LiveArea(screen).draw([{ mark: "*", paint: same, text: "a long text" }]);
  expect(screen.lines).toEqual(["* a long …"]);
});

test.each([
  ["short", "short"],
  ["ten column", "ten column"],
  ["exactly ten", "exactly t…"],
  ["日本語日本語", "日本語日…"],
  ["a\nb\tc\x1b", "a b c\uFFFD"],
])("%j fits ten columns as %j", (text, expected) => {
  expect(fit(text, 10)).toBe(expected);
});
