/** Measures how long executables take to print version and help, and their size, compared with the smallest program that Bun compiles. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { compile } from "../build.ts";
import type { Row } from "./measure.ts";
import { interleaved, inMegabytes, inMilliseconds, rowOf } from "./measure.ts";

const rounds = 100;
const questions = [
  { words: ["--version"], limit: 1.1 },
  { words: ["--help"], limit: 1.15 },
  { words: ["create", "--help"], limit: 1.15 },
] as const;
/** The cloud's SDK takes the difference. */
const mostMegabytesOf = (program: string): number => (program === "cluster-cloud" ? 8 : 5);

export async function measureStartUp(executable: string): Promise<readonly Row[]> {
  return await withHello(async (hello) => {
    const commands = questions.map(({ words }) => [executable, ...words]);
    const [references = [], ...seconds] = await interleaved([[hello], ...commands], rounds);
    return questions.map(({ words, limit }, index) =>
      rowOf({
        what: `start-up: ${words.join(" ")}`,
        values: seconds[index] ?? [],
        unit: inMilliseconds,
        references,
        by: "compiled hello",
        limit,
      }),
    );
  });
}

export async function measureSizes(executables: readonly string[]): Promise<readonly Row[]> {
  return await withHello(async (hello) => {
    const megabytesOf = async (path: string): Promise<number> => (await stat(path)).size / 1e6;
    const smallest = await megabytesOf(hello);
    return await Promise.all(
      executables.map(async (path) => {
        const beyond = (await megabytesOf(path)) - smallest;
        return rowOf({
          what: `size: ${basename(path)} beyond a compiled hello`,
          values: [beyond],
          unit: inMegabytes,
          references: [mostMegabytesOf(basename(path))],
          by: `its limit; hello has ${smallest.toFixed(0)} MB`,
          limit: 1,
        });
      }),
    );
  });
}

async function withHello<Result>(use: (hello: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    const source = join(folder, "hello.ts");
    const hello = join(folder, "hello");
    await Bun.write(source, 'console.log("hello");\n');
    await compile({ source, outfile: hello, version: "0" });
    return await use(hello);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
