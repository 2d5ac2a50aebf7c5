import { expect, test } from "bun:test";
import { parseFrames, parseLogs } from "../../../src/platform/node-logs.ts";
import { hostileOutputs } from "../../support/hostile-output.ts";

const names = ["install.log", "journal.txt", "units.txt"] as const;
const outputs = hostileOutputs(33, 3000);
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const asRead = (text: string): string => Buffer.from(text).toString("utf8");

test("3000 hostile logs: each comes back as it was, under its own name, and no other", () => {
  outputs.forEach((text, index) => {
    const other = outputs[(index + 1) % outputs.length]!;
    const stdout = `install.log ${base64(text)}\njournal.txt ${base64(other)}\nunits.txt \n`;
    const expected = [
      ["install.log", asRead(text)],
      ["journal.txt", asRead(other)],
    ].filter(([, content]) => content !== "");
    expect([...parseFrames(stdout, names)]).toEqual(expected as [(typeof names)[number], string][]);
  });
});

test("3000 hostile outputs: names are this program's own, whatever is printed", () => {
  for (const text of outputs) {
    for (const [name] of parseFrames(text, names)) expect(names).toContain(name);
    for (const { name } of parseLogs(text)) expect(name).toMatch(/^[a-z-]+\.(log|txt)$/);
  }
});

test("an output without its beginning loses a text, and forges none", () => {
  const forged = "\njournal.txt aGVsbG8=\n".repeat(9);
  const stdout = `install.log ${base64(forged)}\nunits.txt ${base64("units")}\n`;
  for (let cut = 0; cut < stdout.length; cut += 1) {
    const found = parseFrames(stdout.slice(cut), names);
    expect(found.get("journal.txt")).toBeUndefined();
    expect([forged, undefined]).toContain(found.get("install.log"));
  }
});
