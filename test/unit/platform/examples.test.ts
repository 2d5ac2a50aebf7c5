import { expect, test } from "bun:test";
import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { exampleNames } from "../../../src/platform/examples/example-names.ts";
import { examples, listExamples, writeExample } from "../../../src/platform/examples/examples.ts";
import { platformFolderOf, readPlatformFolder } from "../../../src/platform/folder/read-folder.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const root = join(import.meta.dir, "../../../src/platform/examples");

test.each(["galera", "glusterfs", "patroni", "rabbitmq"])(
  "%s, with which slow tests begin, is a platform's folder",
  async (name) => {
    const folder = join(import.meta.dir, "../../platforms", name);
    expect((await readPlatformFolder(folder, neverAborted)).problems).toBeUndefined();
  },
);

test("the names are those of the folders", async () => {
  const entries = await readdir(root, { withFileTypes: true });
  const folders = entries.filter((each) => each.isDirectory()).map(({ name }) => name);
  expect(folders.toSorted()).toEqual([...exampleNames]);
});

test.each(exampleNames)(
  "%s: every file of the folder is in the program, with its mode",
  async (name) => {
    const entries = await readdir(join(root, name), { recursive: true, withFileTypes: true });
    const onDisk = await Promise.all(
      entries
        .filter((each) => each.isFile())
        .map(async (each) => {
          const file = join(each.parentPath, each.name);
          const isProgram = ((await stat(file)).mode & 0o100) !== 0;
          const text = await readFile(file, "utf8");
          return {
            path: file.slice(join(root, name).length + 1),
            mode: isProgram ? 0o755 : 0o644,
            text,
          };
        }),
    );
    const byPath = (one: { readonly path: string }, other: { readonly path: string }) =>
      one.path < other.path ? -1 : 1;
    expect(examples[name].toSorted(byPath)).toEqual(onDisk.toSorted(byPath));
  },
);

test.each(exampleNames)(
  "%s: is a platform of that name with default numbers of nodes and, if it installs anything, a test",
  async (name) => {
    const platform = await platformFolderOf(name, examples[name]);
    expect(platform.problems).toBeUndefined();
    const { facts, files } = platform.value!;
    expect(facts.name).toBe(name);
    expect(facts.description).toBeString();
    for (const limits of Object.values(facts.nodes)) expect(limits.default).toBeNumber();
    const ownTest = files.find(({ path }) => path === `tests/${name}-test`);
    expect(ownTest?.mode).toBe(name === "bare" ? undefined : 0o755);
  },
);

test.each(exampleNames)("%s: install and check are short, and begin with who runs them", (name) => {
  for (const script of ["install", "check"]) {
    const lines = examples[name]
      .find(({ path }) => path === script)!
      .text.trimEnd()
      .split("\n");
    expect(lines.length).toBeLessThanOrEqual(60);
    expect(lines.slice(1, 4).join(" ").replaceAll(" # ", " ")).toMatch(/root on every node/);
  }
});

test("the list has each example with the nodes that a cluster of it gets", async () => {
  const { rows, examples: listed } = await listExamples();
  expect(rows.slice(1).map(([name]) => name)).toEqual([...exampleNames]);
  expect(rows).toContainEqual([
    "slurm",
    "1.0",
    "1",
    "2",
    "0",
    expect.stringContaining("workload manager"),
  ]);
  const slurm = {
    name: "slurm",
    version: "1.0",
    nodes: { masters: 1, agents: 2, publicAgents: 0 },
  };
  expect(listed).toContainEqual({
    ...slurm,
    description: expect.stringContaining("workload manager") as string,
  });
});

test("an example is written to a folder that is new or empty, as a platform that can be packed, and to no other", async () => {
  await using scratch = await scratchFolder();
  const [fresh, empty] = [join(scratch.path, "a", "etcd"), join(scratch.path, "empty")];
  await mkdir(empty);
  for (const folder of [fresh, empty]) {
    await writeExample("etcd", folder);
    expect((await readPlatformFolder(folder, neverAborted)).value?.facts.name).toBe("etcd");
  }
  expect(await failureOf(writeExample("slurm", fresh))).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("it is not empty"),
  });
  expect((await readdir(fresh)).toSorted()).toEqual([
    "check",
    "install",
    "platform.yaml",
    "tests",
    "upgrade",
  ]);
  const inFile = failureOf(writeExample("slurm", join(fresh, "check")));
  expect(await inFile).toMatchObject({ id: "bad-usage", facts: { folder: join(fresh, "check") } });
});

test("of several that are written to one folder at once, one is there, whole", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "mine");
  const names = ["etcd", "etcd", "swarm", "slurm"] as const;
  const ends = await Promise.allSettled(names.map(async (name) => writeExample(name, folder)));
  expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const written = names[ends.findIndex(({ status }) => status === "fulfilled")]!;
  const { value } = await readPlatformFolder(folder, neverAborted);
  expect(value?.files.map(({ path }) => path)).toEqual(
    examples[written].map(({ path }) => path).toSorted(),
  );
});
