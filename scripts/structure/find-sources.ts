import { stat } from "node:fs/promises";
import { join } from "node:path";

/** Paths of the sources from the top of a checkout; without tests, generated files and what others wrote: the folder `src`, else `lib`, else all. */
export async function findSources(root: string): Promise<readonly string[]> {
  const folders = await Promise.all(
    ["src", "lib"].map(async (name) => ((await exists(join(root, name))) ? [name] : [])),
  );
  const [folder] = folders.flat();
  const top = folder === undefined ? "" : `${folder}/`;
  return await scan(root, `${top}**/*.{ts,tsx,js,mjs,sh,py}`);
}

/** Folders beside the sources, such as those of build tools and of the project's web site. */
const beside =
  /^(?:docs?|examples?|hack|images|scripts|site|tests?)\/|(?:^|\/)(?:node_modules|testdata|vendor)\//;
const notSource = /[.-](?:test|spec|d)\.[a-z]+$/;

async function scan(root: string, pattern: string): Promise<readonly string[]> {
  const paths = await Array.fromAsync(new Bun.Glob(pattern).scan(root));
  return paths.filter((path) => !beside.test(path) && !notSource.test(path)).toSorted();
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
