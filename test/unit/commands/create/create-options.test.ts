import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudDriver } from "../../../src/bin/cloud-driver.ts";
import { parseCommandLine } from "../../../src/cli/options/parse.ts";
import { Problems } from "../../../src/cli/options/problems.ts";
import { createOptions } from "../../../src/commands/create-options.ts";
import { programFor } from "../../../src/commands/program.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** What `create` makes of these words, beside its required ones. */
async function parsed(words: readonly string[], cwd: string) {
  const create = programFor(cloudDriver).commands.find(({ name }) => name === "create")!;
  const command = { ...create, positionals: {}, options: createOptions(cloudDriver) };
  const problems = new Problems("");
  const invocation = { cwd, environment: { TMPDIR: cwd } };
  const argv = ["--variant", "oss", ...words];
  const { values } = await parseCommandLine(command, argv, { invocation, problems, hide: () => {} });
  return { values, problems: problems.all };
}

test("a file with two problems is refused with both", async () => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "extra.yaml"), "a: 1\na: 2\nb: 1\nb: 2\n");
  const { problems } = await parsed(["--extra-config", "extra.yaml"], folder.path);
  const path = join(folder.path, "extra.yaml");
  expect(problems).toEqual([
    `--extra-config: ${path}:2:1: Map keys must be unique; ${path}:4:1: Map keys must be unique`,
  ]);
});

test("paths are read from the folder in which the command was given", async () => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "extra.yaml"), "a: 1\n");
  await mkdir(join(folder.path, "work"));
  await mkdir(join(folder.path, "genconf"));
  await writeFile(join(folder.path, "genconf", "ip-detect"), "#!/bin/sh\n");
  const words = "--extra-config extra.yaml --workspace-dir work --genconf-dir genconf".split(" ");
  const { values, problems } = await parsed(words, folder.path);
  expect(problems).toEqual([]);
  expect(values).toMatchObject({ extraConfig: { a: 1 }, workspaceDir: join(folder.path, "work") });
});

test.each([
  ["--masters 2", '--masters: "2" is not one of 1, 3, 5, 7, 9'],
  ["--workspace-dir nowhere", /^--workspace-dir: .*nowhere/],
  ["--artifact-sha256 abc", "--artifact-sha256: a SHA-256 checksum has 64 hexadecimal digits"],
  ["--copy-to-master here", /^--copy-to-master: /],
  ["--ssh-key nowhere", /^--ssh-key: /],
])("%s is refused", async (words, problem) => {
  await using folder = await scratchFolder();
  const { problems } = await parsed(words.split(" "), folder.path);
  expect(problems).toHaveLength(1);
  if (typeof problem === "string") expect(problems[0]).toBe(problem);
  else expect(problems[0]).toMatch(problem);
});

test("a checksum may be given in capital letters", async () => {
  const { values } = await parsed(["--artifact-sha256", "AB".repeat(32)], "/tmp");
  expect(values).toMatchObject({ artifactSha256: "ab".repeat(32), masters: 1, agents: 1, publicAgents: 1 });
});
