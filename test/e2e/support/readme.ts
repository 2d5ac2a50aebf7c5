import { join } from "node:path";
import { repository } from "./executable.ts";

const pages = ["README.md", "src/bin/README.md"] as const;

/** The lines of the shell example on the pages about installing that stands right under `<!-- tried: NAME -->`. */
export async function readmeExample(name: string): Promise<string> {
  const texts = await Promise.all(pages.map(async (page) => await Bun.file(join(repository, page)).text()));
  const start = `<!-- tried: ${name} -->`;
  const lines = new RegExp(`${start}\\s+\`\`\`sh\\n(.*?)\`\`\``, "s").exec(texts.join("\n"))?.[1];
  if (lines === undefined) throw new Error(`${pages.join(" and ")} have no example under ${start}`);
  return lines;
}
