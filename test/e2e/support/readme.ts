import { join } from "node:path";
import { repository } from "./executable.ts";

/** The lines of the README's shell example that stands right under `<!-- tried: NAME -->`. */
export async function readmeExample(name: string): Promise<string> {
  const text = await Bun.file(join(repository, "README.md")).text();
  const start = `<!-- tried: ${name} -->`;
  const lines = new RegExp(`${start}\\s+\`\`\`sh\\n(.*?)\`\`\``, "s").exec(text)?.[1];
  if (lines === undefined) throw new Error(`the README has no example under ${start}`);
  return lines;
}
