/** See scripts/check-dcos, which runs this. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { exampleConfigurations } from "./dcos/example-configurations.ts";
import { readReleaseFacts } from "./dcos/release-facts.ts";
import type { ReleaseFacts } from "./dcos/release-facts.ts";

const repository = join(import.meta.dir, "..");
const tableFile = join(repository, "test/dcos-platform/releases.json");
const generator = join(import.meta.dir, "dcos/generate.py");
/** Names a tag unambiguously: a branch may have the same name. */
const revision = (tag: string): string => `refs/tags/${tag}`;

interface Table {
  readonly source: string;
  readonly releases: Readonly<Record<string, ReleaseFacts>>;
}

interface Answer {
  readonly problems: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, string>>;
  readonly adapted: readonly string[];
}

const words = process.argv.slice(2);
const flags = new Set(words.filter((word) => word.startsWith("--")));
const [checkout, ...tags] = words.filter((word) => !word.startsWith("--"));
const unknown = [...flags].filter((flag) => flag !== "--facts-only" && flag !== "--write");
if (checkout === undefined || unknown.length > 0) {
  process.stderr.write("usage: scripts/check-dcos [--facts-only] [--write] CHECKOUT [TAG...]\n");
  process.exitCode = 2;
} else {
  process.exitCode = await main(checkout);
}

async function main(folder: string): Promise<number> {
  const table = JSON.parse(await readFile(tableFile, "utf8")) as Table;
  const names = tags.length > 0 ? tags : Object.keys(table.releases);
  const found = names.map((tag) => ({ tag, facts: factsOf(folder, tag) }));
  if (flags.has("--write")) {
    await writeFile(
      tableFile,
      `${JSON.stringify({ ...table, releases: Object.fromEntries(found.map(({ tag, facts }) => [tag, facts])) }, undefined, 2)}\n`,
    );
    process.stdout.write(`${relative(process.cwd(), tableFile)}: ${names.length} releases\n`);
    return 0;
  }
  const problems = found.flatMap(({ tag, facts }) => differences(tag, table.releases[tag], facts));
  if (!flags.has("--facts-only"))
    for (const tag of names) problems.push(...(await generatorProblems(folder, tag)));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(`${names.length} releases, ${problems.length} differences\n`);
  return problems.length === 0 ? 0 : 1;
}

function factsOf(folder: string, tag: string): ReleaseFacts {
  return readReleaseFacts((path) => {
    const shown = Bun.spawnSync(["git", "-C", folder, "show", `${revision(tag)}:${path}`]);
    return shown.exitCode === 0 ? shown.stdout.toString() : undefined;
  });
}

function differences(
  tag: string,
  known: ReleaseFacts | undefined,
  found: ReleaseFacts,
): readonly string[] {
  if (known === undefined) return [`${tag}: not in the table: ${JSON.stringify(found)}`];
  const keys = [
    ...new Set([...Object.keys(known), ...Object.keys(found)]),
  ] as (keyof ReleaseFacts)[];
  return keys
    .filter((key) => JSON.stringify(known[key]) !== JSON.stringify(found[key]))
    .map(
      (key) =>
        `${tag}: ${key} is ${JSON.stringify(found[key])}, and the table has ${JSON.stringify(known[key])}`,
    );
}

/** Lets the release's own generator read our configurations. */
async function generatorProblems(folder: string, tag: string): Promise<readonly string[]> {
  const work = await mkdtemp(join(tmpdir(), "check-dcos-"));
  try {
    const source = join(work, "source");
    await mkdir(source);
    await Bun.$`git -C ${folder} archive ${revision(tag)} gen pkgpanda dcos_installer release | tar -x -C ${source}`.quiet();
    const problems: string[] = [];
    for (const { name, configuration } of exampleConfigurations(tag)) {
      const answer = await askGenerator(work, source, configuration);
      if (typeof answer === "string") return [`${tag}: its generator does not run: ${answer}`];
      const refused = Object.entries(answer.problems).map(
        ([key, text]) => `${tag}, ${name}: ${key}: ${text}`,
      );
      problems.push(
        ...refused,
        ...wrongValues(configuration, answer).map((text) => `${tag}, ${name}: ${text}`),
      );
      if (name === "1/1/1")
        process.stderr.write(`${tag}: adapted: ${answer.adapted.join(", ") || "nothing"}\n`);
    }
    return problems;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Returns a string if the generator did not answer: the reason. */
async function askGenerator(
  work: string,
  source: string,
  configuration: Readonly<Record<string, unknown>>,
): Promise<Answer | string> {
  const genconf = join(work, "genconf");
  await mkdir(genconf, { recursive: true });
  for (const name of ["ip-detect", "ip-detect-public"]) {
    await writeFile(join(genconf, name), "#!/bin/sh\necho 10.0.0.1\n");
    await chmod(join(genconf, name), 0o755);
  }
  const file = join(genconf, "config.yaml");
  await writeFile(file, Bun.YAML.stringify(configuration));
  const python = process.env["CHECK_DCOS_PYTHON"] ?? "python3";
  const asked = Bun.spawnSync([python, generator, source, file], { cwd: work });
  const stderr = asked.stderr.toString().trim();
  if (asked.exitCode !== 0) return stderr.split("\n").at(-1) ?? `status ${asked.exitCode}`;
  return JSON.parse(asked.stdout.toString().trim().split("\n").at(-1) ?? "") as Answer;
}

/** Returns the values that we wrote and the generator read as something else. Keys that it doesn't know have no value. */
function wrongValues(
  configuration: Readonly<Record<string, unknown>>,
  { values }: Answer,
): readonly string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const given = configuration[key];
    if (given === undefined || value === "None") return [];
    const expected =
      typeof given === "string" ? given : JSON.stringify(given).replaceAll(",", ", ");
    return value === expected ? [] : [`${key} became ${value}`];
  });
}
