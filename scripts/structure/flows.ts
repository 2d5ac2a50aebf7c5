import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Files in reading order, which explain one operation of the program. */
export interface Flow {
  readonly title: string;
  readonly files: readonly string[];
}

/** Reads the flows from a checkout's CONTRIBUTING.md; empty if it has none. */
export async function readFlows(root: string): Promise<readonly Flow[]> {
  return parseFlows(await readFile(join(root, "CONTRIBUTING.md"), "utf8").catch(() => ""));
}

/** A heading `### Follow …`, and below it a numbered list whose items begin with a path. */
export function parseFlows(text: string): readonly Flow[] {
  const [, ...sections] = text.split(/^### Follow /m);
  return sections.map((section) => {
    const [title = "", ...lines] = section.split(/^#/m)[0]?.split("\n") ?? [];
    const files = lines.flatMap((line) => /^\d+\. `([^`]+)`/.exec(line)?.[1] ?? []);
    return { title, files: [...new Set(files)] };
  });
}
