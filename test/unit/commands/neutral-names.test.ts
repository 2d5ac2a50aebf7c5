/** Below the commands, texts name options neutrally; the command line writes its flags in their place. */
import { containerSchema } from "../../../src/backend/container/options.ts";
import { vmSchema } from "../../../src/backend/vm/options.ts";
import { outside } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../src/errors.ts";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { libraryWords, withLibraryWords } from "../../../src/library/call-options.ts";
import { flagNames } from "../../../src/cli/options/problems.ts";
import { commonOptions, faultKinds, faultRows } from "../../../src/platform/faults/fault-kinds.ts";
import { programFor } from "../../../src/commands/program.ts";

const programs = [cloudKind, containerKind, vmKind].map(programFor);
const options = programs.flatMap(({ commands }) =>
  commands.flatMap((command) => Object.entries(command.options)),
);

/** Commands for people to type, and flags of other programs. */
const allowed = [
  // Where a backend declares its options.
  /^backend\/\w+\/options\.ts: flag: "--[a-z-]+",$/,
  // Where a kind of fault does.
  /^platform\/faults\/[\w-]+\.ts: (?:\{ |\w+: \w+\(\{ )?flag: "--[a-z-]+",/,
  /cluster-(?:cloud|container|vm) [a-z]+ --/,
  /cloud-init status --wait/,
  /`--(?:name=\$|memory=\$|cpus=\$|env=container|subnet=\$)/,
  // Options of the container engines.
  /^backend\/container\/engine\/engine-kinds\.ts: (?:removeWords|untagWords): .*"--force"/,
  /^backend\/container\/.*"--user=0:0"/,
  /openEngine\(engineKinds\[\w+\], `--engine /,
];

/** Too many programs have these. */
const everywhere = ["--all", "--output", "--quiet", "--yes"];

/** Lines of code, without comments, of every file that knows nothing of a command line. The library, an edge like the commands, has its own words. */
async function lines(): Promise<readonly string[]> {
  const source = join(import.meta.dir, "..", "..", "..", "src");
  const paths = await Array.fromAsync(new Bun.Glob("**/*.ts").scan(source));
  const below = paths.filter(
    (path) => !/^(?:bin|cli|commands|library)\/|^backend\/(\w+)\/\1-kind\.ts$/.test(path),
  );
  const texts = await Promise.all(
    below.map(async (path) => ({ path, text: await readFile(join(source, path), "utf8") })),
  );
  return texts.flatMap(({ path, text }) =>
    text
      .split("\n")
      .filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
}

test("no text below the commands names a flag", async () => {
  const flags = new Set(
    options.map(([, { flag }]) => flag).filter((flag) => !everywhere.includes(flag)),
  );
  const named = new RegExp(`(?:^|[^\\w-])(?:${[...flags].join("|")})(?![\\w-])`);
  const naming = (await lines()).filter(
    (line) => named.test(line) && !allowed.some((each) => each.test(line)),
  );
  expect(naming).toEqual([]);
});

async function namesInTexts(): Promise<readonly string[]> {
  return (await lines()).flatMap((line) => {
    const escaped = [...line.matchAll(/\\`(\w+)(?: [^`]*)?\\`/g)];
    const plain = [...line.matchAll(/"[^"]*"/g)].flatMap(([text]) => [
      ...text.matchAll(/`(\w+)(?: [^`]*)?`/g),
    ]);
    return [...escaped, ...plain].map((match) => match[1]!);
  });
}

/** Names of options that no operation of the library has. */
const commandsOnly = ["artifactSha256", "force", "node", "until", "wait"];

test("the library has every option that a text names, or words of its own for it", async () => {
  const source = join(import.meta.dir, "..", "..", "..", "src");
  const paths = await Array.fromAsync(new Bun.Glob("**/*.ts").scan(source));
  const files = paths.filter((path) =>
    /^library\/|\/options\.ts$|\/fault-kinds?\.ts$|\/chaos-plan\.ts$/.test(path),
  );
  const texts = await Promise.all(files.map(async (path) => readFile(join(source, path), "utf8")));
  const own = new Set([
    ...[containerSchema, vmSchema].flatMap((schema) => Object.keys(schema)),
    ...texts.flatMap((text) =>
      [...text.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1]!),
    ),
    ...faultKinds.flatMap((kind) => Object.keys(faultRows[kind].options)),
    ...Object.keys(commonOptions),
  ]);
  const unknown = [...new Set(await namesInTexts())].filter(
    (name) => libraryWords(`\`${name}\``) === `\`${name}\``,
  );
  expect(unknown.filter((name) => !own.has(name) && !commandsOnly.includes(name))).toEqual([]);
});

test("every name in backquotes is that of an option, with one flag in each program", async () => {
  const inTexts = await namesInTexts();
  const names = new Set(options.map(([name]) => name));
  expect(inTexts.length).toBeGreaterThan(40);
  expect([...new Set(inTexts)].filter((name) => !names.has(name))).toEqual([]);
  for (const { commands } of programs) {
    const flags = new Map<string, string>();
    for (const [name, { flag }] of commands.flatMap((command) => Object.entries(command.options))) {
      expect([name, flags.get(name) ?? flag]).toEqual([name, flag]);
      flags.set(name, flag);
    }
  }
});

test.each([
  ["Give `timeout` or `timeout 90m`.", "Give --timeout or --timeout 90m."],
  ["`subnetId`, `region us-west-2`", "--subnet, --cloud-region us-west-2"],
  ["`agents 0` `publicAgents 0`", "--agents 0 --public-agents 0"],
  ["`constructor` and `sh -c` and `open", "`constructor` and `sh -c` and `open"],
  ["--timeout", "--timeout"],
  [
    "Run the list command, or the same command.",
    "Run cluster-cloud list --cloud-region eu-west-1, or the same command.",
  ],
  [
    "Run the inspect command to see its nodes.",
    "Run cluster-cloud inspect --cluster-id demo --cloud-region eu-west-1 to see its nodes.",
  ],
  // Only the options that lead to the cluster are repeated.
  [
    "Run the create command again.",
    "Run cluster-cloud create --cloud-region eu-west-1 --cluster-id demo again.",
  ],
  ["The doctor command knows.", "The doctor command knows."],
  [
    "Check it with the doctor command, or run the doctor command.",
    "Check it with cluster-cloud doctor, or run cluster-cloud doctor --cloud-region eu-west-1.",
  ],
  [
    'Run the command "inspect --versions", or the command "inspect".',
    'Run cluster-cloud inspect --versions --cluster-id demo --cloud-region eu-west-1, or the command "inspect".',
  ],
  ['Run the command "sing loudly".', 'Run the command "sing loudly".'],
  [
    `It says "${outside("the list command failed")}".`,
    `It says "${outside("the list command failed")}".`,
  ],
])("%j becomes %j", (text, expected) => {
  const given = {
    clusterId: "demo",
    region: "eu-west-1",
    subnetId: "subnet-01234567",
    output: "json",
    timeout: 1,
  };
  expect(flagNames(programs[0]!, given)(text)).toBe(expected);
});

test("the library's texts name no level of detail, which only the command line has", async () => {
  const naming = (await lines()).filter((line) => /\s-v+ to\b/.test(line));
  expect(naming.length).toBeGreaterThan(2);
  expect(naming.map(libraryWords).filter((line) => /\s-v+\b/.test(line))).toEqual([]);
  const failure = new ClusterError("engine-failed", "It failed.", {
    hint: "Pass -vv to see every command that was run.",
  });
  expect(withLibraryWords(failure)).toMatchObject({ message: "It failed.", hint: undefined });
});

test("the library's texts name its calls in place of commands, where it has them", () => {
  expect(libraryWords("Run the inspect command to see its nodes.")).toBe(
    "Call `Cluster.find` to see its nodes.",
  );
  expect(libraryWords("export it after the create command has ended")).toBe(
    "export it after `Cluster.create` has ended",
  );
  expect(libraryWords("Wait (run the wait command), then sync.")).toBe(
    "Wait (call `waitForCluster`), then sync.",
  );
  expect(libraryWords("Run the list command to see all clusters.")).toBe(
    "Run the list command to see all clusters.",
  );
});
