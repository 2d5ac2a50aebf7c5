/** `examples`, as users run it. */
import { expect, test } from "bun:test";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { exampleNames } from "../../../src/platform/examples/example-names.ts";
import { examples } from "../../../src/platform/examples/examples.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const program = join(import.meta.dir, "../../../src/bin/cluster-container.ts");

async function run(cwd: string, ...words: readonly string[]) {
  const env = { PATH: process.env["PATH"], HOME: cwd, COLUMNS: "10000" };
  const argv = [process.execPath, program, "examples", ...words];
  const child = Bun.spawn(argv, { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  return { status, stdout, stderr };
}

test("it lists each example with its default nodes", async () => {
  await using scratch = await scratchFolder();
  const { status, stdout, stderr } = await run(scratch.path);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^NAME +VERSION +MASTERS +AGENTS +PUBLIC AGENTS +DESCRIPTION$/);
  expect(lines.slice(1).map((line) => line.split(" ")[0])).toEqual([...exampleNames]);
  expect(stdout).toMatch(/^slurm +1\.0 +1 +2 +0 +Slurm, /m);
  const json = JSON.parse((await run(scratch.path, "--output", "json")).stdout) as {
    readonly examples: unknown[];
  };
  expect(json.examples).toHaveLength(exampleNames.length);
  expect(json.examples[1]).toMatchObject({
    name: "etcd",
    nodes: { masters: 3, agents: 0, publicAgents: 0 },
  });
});

test("it writes an example to a new folder, with the run bits", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "a", "mine");
  expect(await run(scratch.path, "etcd", "a/mine")).toEqual({
    status: 0,
    stdout: `${folder}\n`,
    stderr: "",
  });
  for (const { path, mode, text } of examples.etcd) {
    expect(await readFile(join(folder, path), "utf8")).toBe(text);
    expect((await stat(join(folder, path))).mode & 0o111).toBe(mode === 0o755 ? 0o111 : 0);
  }
});

test("it writes to an empty folder, but over nothing", async () => {
  await using scratch = await scratchFolder();
  await mkdir(join(scratch.path, "empty"));
  expect((await run(scratch.path, "swarm", "empty")).status).toBe(0);
  const again = await run(scratch.path, "slurm", "empty");
  expect({ status: again.status, stdout: again.stdout }).toEqual({ status: 2, stdout: "" });
  expect(again.stderr).toContain("it is not empty.");
  const file = await run(scratch.path, "slurm", "empty/install");
  expect(file.status).toBe(2);
  expect(file.stderr).toContain("empty/install: file already exists.\n");
  expect(file.stderr).toContain("[bad-usage]");
});

test.each([
  [["etcd"], "DIR: required with NAME"],
  [
    ["etc", "x"],
    'NAME: "etc" is not one of bare, etcd, pacemaker, slurm, swarm; did you mean etcd?',
  ],
])("bad usage: %p", async (words, problem) => {
  await using scratch = await scratchFolder();
  const { status, stderr } = await run(scratch.path, ...words);
  expect(status).toBe(2);
  expect(stderr).toContain(problem);
});
