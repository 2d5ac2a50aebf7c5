/** The recipes for CI: their files are valid YAML, and their commands are valid command lines. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { parseCommandLine } from "../../../src/cli/options/parse.ts";
import { Problems } from "../../../src/cli/options/problems.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { programFor } from "../../../src/commands/program.ts";

const page = readFileSync(join(import.meta.dir, "../../../src/backend/cloud/README.md"), "utf8");
const recipes = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = ""]) => text);
const values: Readonly<Record<string, string>> = {
  CLUSTER: "ci-1-1",
  ARTIFACT: "https://example.com/installer.sh",
  AGE_RECIPIENT: "age1example",
};

/** The words of each command line of our program in a recipe, without its redirection. */
const commandLines = (recipe: string): readonly (readonly string[])[] =>
  [...recipe.matchAll(/\bcluster-cloud ((?:(?!>).)*)/g)].map(([, line = ""]) =>
    line
      .trim()
      .split(" ")
      .map((word) => word.replace(/^"\$(\w+)"$/, (_all, name: string) => values[name] ?? "unset")),
  );

// Shows R96.
test("the recipes are a workflow of GitHub Actions and a pipeline of GitLab CI, of two jobs each", () => {
  const [github, gitlab, ...others] = recipes.map((text): unknown => parse(text));
  expect(others).toEqual([]);
  expect(github).toMatchObject({
    jobs: { create: { steps: expect.any(Array) }, test: { needs: "create" } },
  });
  expect(gitlab).toMatchObject({
    stages: ["create", "test"],
    create: { stage: "create" },
    test: { stage: "test" },
  });
});

test("each command in the recipes is one that the program accepts", async () => {
  const program = programFor(cloudKind);
  for (const recipe of recipes) {
    const lines = commandLines(recipe);
    expect(lines.map(([name]) => name)).toEqual(["create", "export", "admit", "import", "run"]);
    for (const [name, ...argv] of lines) {
      const problems = new Problems("");
      const command = program.commands.find((each) => each.name === name)!;
      const invocation = { cwd: import.meta.dir, environment: { TMPDIR: "/tmp" } };
      await parseCommandLine(command, argv, { invocation, problems, hide: () => {} });
      expect([name, ...problems.all]).toEqual([name]);
    }
  }
});

interface OneJob {
  readonly jobs?: {
    readonly test: {
      readonly steps: readonly { readonly uses?: string; readonly with?: Inputs }[];
    };
  };
  readonly test?: { readonly variables: Inputs };
}

type Inputs = Readonly<Record<string, string>>;

test("the recipes of one job give the action its inputs, and once options that the program accepts", async () => {
  const folder = join(import.meta.dir, "../../../scripts/ci");
  const blocks = [
    ...readFileSync(join(folder, "README.md"), "utf8").matchAll(/^```yaml\n(.*?)^```$/gms),
  ];
  const jobs = blocks.map(([, text = ""]) => parse(text) as OneJob);
  const { inputs } = parse(readFileSync(join(folder, "action.yml"), "utf8")) as {
    readonly inputs: object;
  };
  const steps = jobs.flatMap(
    (job) => job.jobs?.test.steps.filter(({ uses }) => uses?.includes("/scripts/ci@")) ?? [],
  );
  expect(steps.map((step) => step.with?.["backend"] ?? "container")).toEqual([
    "container",
    "vm",
    "cloud",
  ]);
  for (const step of steps)
    expect(Object.keys(inputs)).toEqual(expect.arrayContaining(Object.keys(step.with ?? {})));
  const ofGithub = steps.map((step): readonly [string, string] => [
    step.with?.["backend"] ?? "container",
    step.with?.["options"] ?? "",
  ]);
  const ofGitlab = jobs.flatMap(({ test: job }) =>
    job === undefined ? [] : [job.variables["OPTIONS"] ?? ""],
  );
  expect(ofGitlab).toHaveLength(1);
  for (const [backend, options] of [...ofGithub, ["container", ofGitlab[0]!] as const]) {
    const kind = [cloudKind, containerKind, vmKind].find(({ name }) => name === backend)!;
    const command = programFor(kind).commands.find(({ name }) => name === "once")!;
    const problems = new Problems("");
    const argv = [
      ...options.split(/\s+/).filter((word) => word !== ""),
      "example:etcd",
      "--",
      "true",
    ];
    const invocation = { cwd: import.meta.dir, environment: { TMPDIR: "/tmp" } };
    await parseCommandLine(command, argv, { invocation, problems, hide: () => {} });
    expect([backend, ...problems.all]).toEqual([backend]);
  }
});
