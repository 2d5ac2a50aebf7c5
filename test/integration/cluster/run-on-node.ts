import { join } from "node:path";

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command line of a program that runs a command on a node; see run-on-node-program.ts. */
export const runOnNodeWords = (request: object): readonly string[] => [
  process.execPath,
  join(import.meta.dir, "run-on-node-program.ts"),
  JSON.stringify({ fetches: [], ...request }),
];

/** Runs that program, in a process of its own. */
export async function runOnNode(
  request: object,
  stdin: Blob | "ignore" = "ignore",
): Promise<Ended> {
  return ended(runOnNodeWords(request), { stdio: [stdin, "pipe", "pipe"] });
}

export async function ended(
  words: readonly string[],
  options: { readonly stdio: [Blob | "ignore", "pipe", "pipe"]; readonly env?: typeof process.env },
): Promise<Ended> {
  const child = Bun.spawn([...words], options);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status: await child.exited, stdout, stderr };
}
