/** The syntax of everything for CI systems, by GitHub's own language service and by GitLab's schema. */
import { describe, expect, test } from "bun:test";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { validate } from "@actions/languageservice";
import { TextDocument } from "vscode-languageserver-textdocument";
import { scratchFolder } from "../../support/scratch-folder.ts";

const root = join(import.meta.dir, "..", "..", "..");
const recipes = join(root, "scripts", "ci");
const gitlabLinter = join(root, "node_modules", "gitlab-ci-local", "dist", "index.js");

interface Block {
  readonly text: string;
  readonly isWorkflow: boolean;
}

/** The YAML on a page: workflows of GitHub, whose jobs are below one key, and pipelines of GitLab. */
async function blocksOf(page: string): Promise<readonly Block[]> {
  const text = await Bun.file(join(root, page)).text();
  const blocks = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, found = ""]) => found);
  return blocks.map((found) => ({ text: found, isWorkflow: /^jobs:$/m.test(found) }));
}

/** What GitHub's language service finds. It remembers documents by name, so each text needs its own. */
async function lintedByGithub(path: string, text: string): Promise<readonly string[]> {
  const found = await validate(TextDocument.create(`file:///${path}`, "yaml", 1, text));
  return found.map(
    ({ range, message }) =>
      `${range.start.line + 1}: ${typeof message === "string" ? message : message.value}`,
  );
}

/** What a linter with GitLab's schema prints about a pipeline, with our template at the path that the page names; empty: nothing. */
async function lintedByGitlab(text: string): Promise<string> {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "ci"));
  await cp(join(recipes, "gitlab.yml"), join(folder.path, "ci", "gitlab.yml"));
  await Bun.write(join(folder.path, ".gitlab-ci.yml"), text);
  // The linter includes only files that git knows.
  await Bun.spawn(["sh", "-c", "git init --quiet && git add ."], { cwd: folder.path }).exited;
  const linter = Bun.spawn([process.execPath, gitlabLinter, "--list", "--no-color"], {
    cwd: folder.path,
    env: { ...process.env, HOME: folder.path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = await Promise.all([
    new Response(linter.stdout).text(),
    new Response(linter.stderr).text(),
  ]);
  return (await linter.exited) === 0 ? "" : said.join("");
}

const pages = ["scripts/ci/README.md", "src/backend/cloud/README.md"];

test("the actions are valid", async () => {
  const cluster = await Bun.file(join(recipes, "cluster", "action.yml")).text();
  expect(await lintedByGithub("cluster/action.yml", cluster)).toEqual([]);
  const text = await Bun.file(join(recipes, "action.yml")).text();
  expect(await lintedByGithub("ours/action.yml", text)).toEqual([]);
  expect(
    await lintedByGithub("broken/action.yml", text.replace("shell: sh", "shel: sh")),
  ).not.toEqual([]);
});

test("actions of others are pinned to commits, in the action and on the pages", async () => {
  const texts = await Promise.all(
    [...pages, "scripts/ci/action.yml"].map(async (path) => Bun.file(join(root, path)).text()),
  );
  const used = [...texts.join("\n").matchAll(/\buses: (\S+)/g)].map(([, found = ""]) => found);
  expect(used.length).toBeGreaterThan(9);
  const own = /^OWNER\/REPO\/scripts\/ci(?:\/cluster)?@TAG$/;
  expect(used.filter((each) => !own.test(each) && !/^[\w./-]+@[0-9a-f]{40}$/.test(each))).toEqual(
    [],
  );
});

describe.each(pages)("%s", (page) => {
  test("the workflows and pipelines are valid", async () => {
    const blocks = await blocksOf(page);
    expect(blocks.some(({ isWorkflow }) => isWorkflow)).toBe(true);
    expect(blocks.some(({ isWorkflow }) => !isWorkflow)).toBe(true);
    for (const [place, { text, isWorkflow }] of blocks.entries())
      if (isWorkflow)
        expect(await lintedByGithub(`${page}/.github/workflows/${place}.yml`, text)).toEqual([]);
      else expect(await lintedByGitlab(text)).toBe("");
  });
});

test("a mistake in a workflow or a pipeline is found", async () => {
  const [block] = await blocksOf("src/backend/cloud/README.md");
  const wrong = block!.text
    .replace("runs-on:", "run-on:")
    .replace("${{ vars.ARTIFACT }}", "${{ nothing.ARTIFACT }}");
  expect(await lintedByGithub("wrong/.github/workflows/wrong.yml", wrong)).toHaveLength(3);
  expect(
    await lintedByGitlab("test:\n  script: [ls]\n  artifacts: { whenever: always }\n"),
  ).toContain("whenever");
});
