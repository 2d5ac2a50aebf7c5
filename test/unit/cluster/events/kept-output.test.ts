import { expect, test } from "bun:test";
import {
  createKeptOutput,
  lastLines,
  wholeLines,
} from "../../../../src/cluster/events/kept-output.ts";

const mask = (text: string): string => text.replaceAll("s3cret", "***");
const kept = (...chunks: readonly (string | Uint8Array)[]): readonly string[] => {
  const output = createKeptOutput(true);
  for (const chunk of chunks) output.add(Buffer.from(chunk));
  return lastLines(output.outputs(), mask);
};

test("the last lines are kept as they are, without terminal codes", () => {
  expect(kept("one\r\n\n", "  \u001b[31mtwo\u001b[0m\n", "\n\n")).toEqual(["one", "", "  two"]);
  expect(kept("  1%\r 50%\r100%\ndone \u001b]0;title\u0007")).toEqual([
    "100%",
    "done \uFFFD]0;title\uFFFD",
  ]);
  expect(kept()).toEqual([]);
  expect(kept("\n \n")).toEqual([]);
});

test("secrets are masked, also where they arrive in parts or are private keys, and no rest of one is shown", () => {
  expect(kept("the s3", "cret is s3cret\n")).toEqual(["the *** is ***"]);
  const key = `-----BEGIN PRIVATE KEY-----\n${"A".repeat(64)}\n-----END PRIVATE KEY-----\n`;
  expect(kept(key).join("\n")).not.toContain("AAAA");
  expect(kept(`${"y".repeat(600)}s3c`, `ret${"x".repeat(65_533)}\n`, "end\n")).toEqual(["end"]);
});

test("no line is shown whose beginning is lost, with the rest of a secret", () => {
  expect(kept(`s3c`, `ret${"x".repeat(70_000)}`)).toEqual([]);
  expect(kept(`s3cret${"x".repeat(65_533)}\nend`)).toEqual(["end"]);
  expect(wholeLines("cret is known\nend", 17)).toBe("end");
  expect(wholeLines("cret is known", 13)).toBe("");
  expect(wholeLines("is known\nend", 20)).toBe("is known\nend");
  expect(lastLines([{ text: `s3cret${"x".repeat(65_533)}\nend` }], mask)).toEqual(["end"]);
});

test("characters that arrive in parts are whole", () => {
  const bytes = Buffer.from("höhe");
  expect(kept(bytes.subarray(0, 2), bytes.subarray(2))).toEqual(["höhe"]);
});

test("endless output takes no more memory than its end, and its lines are cut", () => {
  const chunk = Buffer.from("0123456789\n".repeat(1000));
  const output = createKeptOutput(true);
  for (let count = 0; count < 2000; count += 1) output.add(chunk);
  expect(output.outputs()[0]?.text.length).toBeWithin(50_000, 80_000);
  output.add(Buffer.from("z".repeat(10_000_000)));
  expect(output.outputs()[0]?.text.length).toBeWithin(0, 66_000);
  expect(lastLines([{ text: `${"z".repeat(1000)}\n${String(chunk)}` }], mask)).toHaveLength(60);
  expect(lastLines([{ text: "z".repeat(1000) }], mask)[0]).toHaveLength(300);
});

test("nodes have equal shares, and their names in each line", () => {
  const lines = Array.from({ length: 50 }, (_, index) => `line ${index}`).join("\n");
  const shown = lastLines(
    ["agent_0", "agent_1", "agent_2"].map((node) => ({
      node,
      text: node === "agent_1" ? "\n" : lines,
    })),
    mask,
  );
  expect(shown).toHaveLength(60);
  expect(shown[0]).toBe("agent_0: line 20");
  expect(shown[59]).toBe("agent_2: line 49");
  const many = Array.from({ length: 1000 }, (_, index) => ({
    node: `agent_${index}`,
    text: "a\nb",
  }));
  expect(lastLines(many, mask)).toHaveLength(60);
});

test("where secrets may be unknown, nothing is kept", () => {
  const output = createKeptOutput(false);
  output.add(Buffer.from("text"));
  expect(lastLines(output.outputs(), mask)).toEqual([]);
});
