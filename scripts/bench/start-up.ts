/** How long the executable takes to say its version or help, against the smallest program that Bun compiles. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../build.ts";
import type { Row } from "./measure.ts";
import { interleaved, milliseconds } from "./measure.ts";

const rounds = 100;
const limit = 1.5;

export async function measureStartUp(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    const hello = await buildHello(folder);
    const [reference, version, help] = (await interleaved(
      [[hello], [executable, "--version"], [executable, "--help"]],
      rounds,
    )) as [number, number, number];
    return [row("--version", version, reference), row("--help", help, reference)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const row = (what: string, seconds: number, reference: number): Row => ({
  what: `start-up: ${what}`,
  value: milliseconds(seconds),
  reference: `${milliseconds(reference)} (compiled hello)`,
  ratio: seconds / reference,
  limit,
});

async function buildHello(folder: string): Promise<string> {
  const source = join(folder, "hello.ts");
  const hello = join(folder, "hello");
  await Bun.write(source, 'console.log("hello");\n');
  await compile({ source, outfile: hello, version: "0" });
  return hello;
}
