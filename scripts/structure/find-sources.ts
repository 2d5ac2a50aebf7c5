import { stat } from "node:fs/promises";
import { join } from "node:path";

export interface Sources {
  readonly language: "go" | "typescript";
  /** From the top of the checkout; without tests, generated files and what others wrote. */
  readonly paths: readonly string[];
}

/** A Go module is read as a whole; of other projects the folder `src`, else `lib`, else all, with the shell and Python files there. */
export async function findSources(root: string): Promise<Sources> {
  if (await exists(join(root, "go.mod")))
    return { language: "go", paths: await scan(root, "**/*.go") };
  const folders = await Promise.all(
    ["src", "lib"].map(async (name) => ((await exists(join(root, name))) ? [name] : [])),
  );
  const [folder] = folders.flat();
  return { language: "typescript", paths: await scan(root, `${folder === undefined ? "" : `${folder}/`}**/*.{ts,tsx,js,mjs,sh,py}`) }; // prettier-ignore
}

/** Folders beside the sources, such as those of build tools and of the project's web site. */
const beside =
  /^(?:docs?|examples?|hack|images|scripts|site|tests?)\/|(?:^|\/)(?:node_modules|testdata|vendor)\//;
const notSource = /_test\.go$|[.-](?:test|spec|d)\.[a-z]+$|(?:^|\/)zz_generated/;

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
