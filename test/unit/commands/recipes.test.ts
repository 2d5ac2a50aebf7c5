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

test("in a checkout, links in the place of what a job writes and keeps are removed before", () => {
  const { create, test: tested } = parse(recipes[1]!) as Record<
    "create" | "test",
    { readonly script: readonly string[] }
  >;
  const before = ({ script }: typeof create, writes: string) =>
    script[script.findIndex((line) => line.includes(writes)) - 1];
  expect(before(create, ">cluster.age")).toBe("rm -rf cluster.age");
  expect(before(tested, ":results/")).toBe("rm -rf results");
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

/** The words behind `once` or `create`, from which the recipes of one job leave out the rest. */
async function optionProblems(name: string, backend: string, options: string) {
  const kind = [cloudKind, containerKind, vmKind].find((each) => each.name === backend)!;
  const command = programFor(kind).commands.find((each) => each.name === name)!;
  const problems = new Problems("");
  const words = options.split(/\s+/).filter((word) => word !== "");
  const argv = [...words, "example:etcd", ...(name === "once" ? ["--", "true"] : [])];
  const invocation = { cwd: import.meta.dir, environment: { TMPDIR: "/tmp" } };
  await parseCommandLine(command, argv, { invocation, problems, hide: () => {} });
  return problems.all;
}

const folder = join(import.meta.dir, "../../../scripts/ci");
const jobs = [
  ...readFileSync(join(folder, "README.md"), "utf8").matchAll(/^```yaml\n(.*?)^```$/gms),
].map(([, text = ""]) => parse(text) as OneJob);

test.each([
  ["ci", "once", ["container", "vm", "cloud"]],
  ["ci/cluster", "create", ["container"]],
])(
  "the recipes of one job give the action %s its inputs, and %s options that the program accepts",
  async (path, name, backends) => {
    const file = join(folder, "..", path, "action.yml");
    const { inputs } = parse(readFileSync(file, "utf8")) as { readonly inputs: object };
    const steps = jobs.flatMap(
      (job) => job.jobs?.test.steps.filter(({ uses }) => uses?.includes(`/scripts/${path}@`)) ?? [],
    );
    expect(steps.map((step) => step.with?.["backend"] ?? "container")).toEqual(backends);
    for (const { with: given = {} } of steps) {
      expect(Object.keys(inputs)).toEqual(expect.arrayContaining(Object.keys(given)));
      const backend = given["backend"] ?? "container";
      expect(await optionProblems(name, backend, given["options"] ?? "")).toEqual([]);
    }
  },
);

test("the pipelines of one job give options that the program accepts", async () => {
  const variables = jobs.flatMap(({ test: job }) => (job === undefined ? [] : [job.variables]));
  expect(variables).toHaveLength(2);
  for (const { OPTIONS = "", COMMAND } of variables) {
    const name = COMMAND === undefined ? "create" : "once";
    expect(await optionProblems(name, "container", OPTIONS)).toEqual([]);
  }
});
