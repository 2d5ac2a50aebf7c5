import { outside } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { OutputWriter } from "../../../../src/cli/terminal/output-writer.ts";
import { noColours } from "../../../../src/cli/terminal/colours.ts";
import { Masker } from "../../../../src/system/masker.ts";

function openWriter(format: string, colours = noColours) {
  const masker = new Masker();
  masker.hide("hunter22");
  const texts: string[] = [];
  const writer = new OutputWriter({
    format,
    isClosed: () => false,
    mask: (text) => masker.text(text),
    write: (text) => void texts.push(text),
    writePainted: (text) => void texts.push(`painted ${text}`),
    paint: (stream, text) => void texts.push(`${stream} ${text}`),
    colours: { stdout: noColours, stderr: colours },
  });
  return { writer, written: () => texts.join("") };
}

const data = { clusterId: "one", password: outside("hunter22") };

test.each([
  ["ready", "ready\n"],
  ["ready\n", "ready\n"],
  ["\nready", "\nready\n"],
  ["", ""],
  [`hunter22 is ${outside("hunter22 \x1b]0;title\x07")}`, "hunter22 is *** \uFFFD]0;title\uFFFD\n"],
])("the result %j is printed as %j", (text, printed) => {
  const { writer, written } = openWriter("text");
  writer.result({ text, data });
  writer.finish({ id: "bug" });
  expect(written()).toBe(printed);
});

test("a result is painted line by line, after its text has been made harmless", () => {
  const { writer, written } = openWriter("text");
  writer.result({
    text: `one\n${outside("two \x1b]0;title\x07")}`,
    data,
    paint: (line) => `<${line}>`,
  });
  expect(written()).toBe("painted <one>\n<two \uFFFD]0;title\uFFFD>\n");
});

test("JSON is printed once, at the end, and names the error if there is one", () => {
  const { writer, written } = openWriter("json");
  writer.result({ text: "ready", data });
  expect(written()).toBe("");
  writer.finish(undefined);
  expect(written()).toEndWith("}\n");
  expect(JSON.parse(written())).toEqual({ schemaVersion: 1, clusterId: "one", password: "***" });

  const failed = openWriter("json");
  failed.writer.finish({ id: "bug", message: outside("hunter22") });
  expect(JSON.parse(failed.written())).toEqual({
    schemaVersion: 1,
    error: { id: "bug", message: "***" },
  });
});

test("a result that is written twice is a bug", () => {
  const { writer } = openWriter("json");
  writer.result({ text: "one", data });
  expect(() => writer.result({ text: "two", data })).toThrow("twice");
});

test("no secret changes the keys of JSON, nor our own values", () => {
  const { writer, written } = openWriter("json");
  writer.result({
    text: "",
    data: {
      hunter22: ["hunter22", 22, outside("hunter22")],
      at: new Date(0),
      hidden: new Set([12n]),
    },
  });
  writer.finish(undefined);
  const [at, hidden] = ["1970-01-01T00:00:00.000Z", ["12"]];
  expect(JSON.parse(written())).toEqual({
    schemaVersion: 1,
    hunter22: ["hunter22", 22, "***"],
    at,
    hidden,
  });
});

test("a source's line is masked, made printable and harmless for CI systems, behind the source's name", async () => {
  const { writer, written } = openWriter("text");
  await writer.line(
    "stderr",
    { name: "agent_0", index: 7 },
    "\x1b[31mhunter22\x1b[0m \x1b]0;title\x07 ##[error]no",
  );
  expect(written()).toBe("stderr agent_0: *** \uFFFD]0;title\uFFFD # #[error]no\n");
});

test("five sources have colours of their own, and the sixth has the first one's", async () => {
  const names = Object.keys(noColours) as (keyof typeof noColours)[];
  const colours = Object.fromEntries(
    names.map((name) => [name, () => name]),
  ) as unknown as typeof noColours;
  const { writer, written } = openWriter("text", colours);
  for (const index of [0, 1, 2, 3, 4, 5])
    await writer.line("stderr", { name: "agent_0", index }, "x");
  expect(written().match(/[a-z]+(?=: x)/g)).toEqual([
    "cyan",
    "green",
    "yellow",
    "bold",
    "red",
    "cyan",
  ]);
});

test("the line of an only source has no name", async () => {
  const { writer, written } = openWriter("text");
  await writer.line("stdout", undefined, "hunter22 \x07");
  expect(written()).toBe("stdout *** \uFFFD\n");
});

test("JSON has no lines of sources", async () => {
  const { writer, written } = openWriter("json");
  await writer.line("stdout", { name: "agent_0", index: 0 }, "text");
  expect(written()).toBe("");
});

test("a result that is needed at once is printed before the command ends, and only once", () => {
  const { writer, written } = openWriter("json");
  writer.result({ text: "ready", data, isAtOnce: true });
  const atOnce = written();
  expect(JSON.parse(atOnce)).toEqual({ schemaVersion: 1, clusterId: "one", password: "***" });
  writer.finish({ id: "interrupted" });
  expect(written()).toBe(atOnce);
});
