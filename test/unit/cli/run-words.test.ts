import { expect, test } from "bun:test";
import { completeWord } from "../../../src/cli/completion-command.ts";
import { programHelp } from "../../../src/cli/help/help.ts";
import type { ProcessLike } from "../../../src/cli/command.ts";
import { runWords } from "../../../src/cli/run-words.ts";
import { declared } from "./declared-program.ts";

async function printed(argv: readonly string[], columns?: string): Promise<string> {
  const host = { env: columns === undefined ? {} : { COLUMNS: columns } } as unknown as ProcessLike;
  const texts: string[] = [];
  await runWords(declared, argv, { host, print: async (text) => void texts.push(text) });
  return texts.join("\n");
}

test.each([[[]], [["-h"]], [["--help"]], [["--help", "create"]]])(
  "%j prints the program's help",
  async (argv) => {
    expect(await printed(argv)).toStartWith("Usage: cluster-x [OPTIONS] COMMAND");
  },
);

test.each([
  [undefined, 100],
  ["", 100],
  ["wide", 100],
  ["39", 100],
  ["40", 40],
  ["60", 60],
  ["200", 100],
])("with %p columns, help is %d columns wide", async (columns, width) => {
  expect(await printed(["--help"], columns)).toBe(programHelp(declared, width).trimEnd());
});

test("prints licenses, and a shell's candidates, one a line", async () => {
  expect(await printed(["--licenses"])).toBe("All free");
  expect(await printed([completeWord, "fish", "create", "--variant", ""])).toBe(
    "words\noss\tThe variant\nenterprise\tThe variant",
  );
});
