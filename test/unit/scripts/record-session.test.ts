import { expect, test } from "bun:test";
import { Screen } from "../../../scripts/record-session/screen.ts";
import { sessionPicture } from "../../../scripts/record-session/session-picture.ts";

const rows = (screen: Screen) => screen.rows.map((row) => row.map(({ text }) => text).join(""));

test("a screen follows the cursor up, erases below it, and wraps at its width", () => {
  const screen = new Screen(10);
  screen.write("one\r\ntwo\r\nthree\r\n\x1b[2A\r\x1b[J");
  expect(rows(screen)).toEqual(["one"]);
  screen.write("\x1b[32m✔\x1b[39m Boot\r\n0123456789ab\r\n");
  expect(rows(screen)).toEqual(["one", "✔ Boot", "0123456789", "ab"]);
  expect(screen.rows[1]).toEqual([
    { style: "c32", text: "✔" },
    { style: "plain", text: " Boot" },
  ]);
});

test("a picture hides what comes later, shows what passes for its time, and escapes it", () => {
  const row = (text: string) => [{ style: "plain", text }];
  const frames = [
    { ms: 0, rows: [row("$ a <b>")] },
    { ms: 500, rows: [row("$ a <b>"), row("wait")] },
    { ms: 1500, rows: [row("$ a <b>"), row("done")] },
  ];
  const lines = sessionPicture(frames, 80).split("\n");
  expect(
    lines
      .filter((line) => line.startsWith("<text"))
      .map((line) => line.replaceAll(/ [xy]="\d+"/g, "")),
  ).toEqual([
    "<text>$ a &lt;b&gt;</text>",
    '<text class="passing">wait<set attributeName="visibility" to="visible" begin="0.50s" dur="1.00s"/></text>',
    '<text>done<set attributeName="visibility" to="hidden" begin="0s" dur="1.50s"/></text>',
  ]);
});
