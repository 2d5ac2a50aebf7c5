import { join } from "node:path";
import { repository } from "./executable.ts";

const pages = ["README.md", "src/bin/README.md"] as const;

/** The lines of the shell example on the pages about installing that stands right under `<!-- tried: NAME -->`. */
export async function readmeExample(name: string): Promise<string> {
  const examples = (await Promise.all(pages.map(async (page) => triedExamples(page)))).flat();
  const example = examples.find((each) => each.name === name);
  if (example === undefined)
    throw new Error(`${pages.join(" and ")} have no example under <!-- tried: ${name} -->`);
  return example.lines;
}

export interface TriedExample {
  readonly name: string;
  /** The exit status that the page promises: 0, or that of `<!-- tried: NAME, exits with STATUS -->`. */
  readonly status: number;
  readonly lines: string;
  /** The block of text behind the example, which shows what it prints; see `missingLine`. Empty if there is none. */
  readonly output: string;
}

/** The shell examples of a page that stand right under such a comment, in their order; `mark` is how it begins. */
export async function triedExamples(
  page: string,
  mark = "tried",
): Promise<readonly TriedExample[]> {
  const text = await Bun.file(join(repository, page)).text();
  const shape =
    /^<!-- ([a-z ]+): ([^,>]+?)(?:, exits with (\d+))? -->\n\n```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/gms;
  const examples = [...text.matchAll(shape)].filter(([, found]) => found === mark);
  return examples.map(([, , name = "", status = "0", lines = "", output = ""]) => ({
    name,
    status: Number(status),
    lines,
    output,
  }));
}

/**
 * The first line that a page shows and the output lacks; undefined if there is none. The output may have other lines in
 * between. `…` stands for any text, and spaces for any number of them.
 */
export function missingLine(shown: string, output: string): string | undefined {
  const left = output.split("\n").map(plain);
  const lines = shown.split("\n").filter((line) => line !== "" && line !== "…");
  return lines.find((line) => {
    const found = left.findIndex((each) => matcher(line).test(each));
    left.splice(0, found + 1);
    return found < 0;
  });
}

const plain = (line: string): string => line.trim().replaceAll(/\s+/g, " ");
const matcher = (line: string): RegExp =>
  new RegExp(`^${plain(line).split("…").map(RegExp.escape).join(".*")}$`);
