/** The pages for readers: every link leads somewhere, and the README leads to all of them. */
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { readmeExample } from "../e2e/support/readme.ts";
import { repository } from "./architecture-rules.ts";

const root = join(import.meta.dir, "..", "..");
const paths = (await repository()).map(({ path }) => path);
const pages = new Map(
  await Promise.all(
    paths
      .filter((path) => path.endsWith(".md"))
      .map(async (path) => [path, await readFile(join(root, path), "utf8")] as const),
  ),
);
const readme = pages.get("README.md")!;

/** Without blocks of code, whose brackets and `#` mean something else. */
const prose = (text: string): string => text.replace(/^ *(`{3,}|~{3,}).*\n(?:.*\n)*? *\1$/gm, "");

/** Targets of links in this repository, such as `src/README.md#bun-and-node` or `#install`. */
function linksOf(text: string): readonly string[] {
  const targets = [...prose(text).matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors that GitHub gives to headings (https://docs.github.com/en/get-started/writing-on-github, "Section links"). */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of prose(text).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The links of a page that lead nowhere. */
function brokenLinks(path: string, text: string): readonly string[] {
  return linksOf(text).filter((link) => {
    const [file = "", anchor] = link.split("#", 2);
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (!paths.includes(target)) return true;
    return (
      anchor !== undefined &&
      !anchorsOf(target === path ? text : (pages.get(target) ?? "")).has(anchor)
    );
  });
}

test("every relative link on a page leads to a file, and its anchor to a heading", () => {
  const broken = [...pages].flatMap(([path, text]) =>
    brokenLinks(path, text).map((link) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test("a link is broken if its file, its heading, or the spelling of either differs", () => {
  const text = [
    "## What's `this`, really?",
    "### logs",
    "### logs",
    "```sh",
    "# in code",
    "[in code](nowhere.md)",
    "```",
    "[a](#whats-this-really) [b](#logs) [c](#logs-1) [`d`](../README.md#install) [e](https://example.com/x#y) [f](index.ts)",
    "[g](#logs-2) [h](#in-code) [i](../readme.md) [j](../README.md#nowhere) [`k`](index.ts#install) [l](gone.md)",
  ].join("\n");
  expect(brokenLinks("src/README.md", text)).toEqual([
    "#logs-2",
    "#in-code",
    "../readme.md",
    "../README.md#nowhere",
    "index.ts#install",
    "gone.md",
  ]);
});

test("the README has under 200 lines, and a link to every page in src", () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThan(200);
  const linked = linksOf(readme).map((link) => link.split("#")[0]);
  const inSource = [...pages.keys()].filter((path) => path.startsWith("src/"));
  expect(inSource.length).toBeGreaterThan(0);
  expect(inSource.filter((path) => !linked.includes(path))).toEqual([]);
});

test("the README's table names every command of the reference", () => {
  const reference = prose(pages.get("src/commands/reference.md")!);
  const commands = [...reference.matchAll(/^### ([a-z]+)$/gm)].map(([, name]) => `[\`${name}\`]`);
  expect(commands).not.toBeEmpty();
  expect(commands.filter((command) => !readme.includes(command))).toEqual([]);
});

test("the README's recording shows the commands of its first example", async () => {
  const example = await readmeExample("first cluster");
  const recording = await readFile(join(root, "src/commands/session.svg"), "utf8");
  const shown = [...recording.matchAll(/>\$ ([^<]*)</g)].map(([, line]) => line);
  expect(shown).toEqual(example.trim().split("\n"));
});

test("the README's first example creates a cluster of an example, on the first screen; the demo and the tests follow", () => {
  const examples = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)];
  const lines = examples.map(([, text = ""]) => text);
  expect(lines[0]).toStartWith("cluster-container create --wait example:slurm\n");
  expect(readme.slice(0, examples[0]?.index).split("\n").length).toBeLessThan(25);
  expect(lines.filter((text) => text.startsWith("./scripts/"))).toEqual([
    "./scripts/demo\n",
    "./scripts/test\n",
  ]);
});

test("the place that the site of the repository expects says how to report a security problem, to no single person", () => {
  const page = pages.get(".github/SECURITY.md")!;
  expect(page).toContain("Report a vulnerability");
  expect(page).not.toMatch(/git log|@/);
  expect(linksOf(pages.get("src/cluster/README.md")!)).toContain("../../.github/SECURITY.md");
});
