/** Below the commands, texts refer to options and commands; the command line and the library have their own words for them. */
import { containerSchema } from "../../../src/backend/container/options.ts";
import { vmSchema } from "../../../src/backend/vm/options.ts";
import { outside } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../src/errors.ts";
import {
  commandName,
  moreDetail,
  neutral,
  optionName,
  runCommand,
} from "../../../src/references.ts";
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
  /systemctl --user restart/,
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

/** The names that texts refer to. */
async function namesInTexts(): Promise<readonly string[]> {
  const calls = (await lines()).flatMap((line) => [...line.matchAll(/\boptionName\("(\w+)"/g)]);
  return [...new Set(calls.map(([, name]) => name!))];
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
  const unknown = (await namesInTexts()).filter(
    (name) => libraryWords(optionName(name)) === neutral(optionName(name)),
  );
  expect(unknown.filter((name) => !own.has(name) && !commandsOnly.includes(name))).toEqual([]);
});

test("every name that a text refers to is that of an option, with one flag in each program", async () => {
  const inTexts = await namesInTexts();
  const names = new Set(options.map(([name]) => name));
  expect(inTexts.length).toBeGreaterThan(40);
  expect(inTexts.filter((name) => !names.has(name))).toEqual([]);
  for (const { commands } of programs) {
    const flags = new Map<string, string>();
    for (const [name, { flag }] of commands.flatMap((command) => Object.entries(command.options))) {
      expect([name, flags.get(name) ?? flag]).toEqual([name, flag]);
      flags.set(name, flag);
    }
  }
});

const [command, run, option] = [commandName, runCommand, optionName];

test.each([
  [`Give ${option("timeout")} or ${option("timeout", "90m")}.`, "Give --timeout or --timeout 90m."],
  [`${option("subnetId")}, ${option("region", "us-west-2")}`, "--subnet, --cloud-region us-west-2"],
  [`${option("agents", 0)} ${option("publicAgents", 0)}`, "--agents 0 --public-agents 0"],
  [`${option("constructor")} and \`sh -c\``, "`constructor` and `sh -c`"],
  ["`timeout` is its own name", "`timeout` is its own name"],
  [
    `${run("list")}, or the same command.`,
    "Run cluster-cloud list --cloud-region eu-west-1, or the same command.",
  ],
  [
    `${run("inspect")} to see its nodes.`,
    "Run cluster-cloud inspect --cluster-id demo --cloud-region eu-west-1 to see its nodes.",
  ],
  // Only the options that lead to the cluster are repeated.
  [
    `${run("create")} again.`,
    "Run cluster-cloud create --cloud-region eu-west-1 --cluster-id demo again.",
  ],
  [
    `Check it with ${command("doctor")}, or ${run("doctor", "run")}.`,
    "Check it with cluster-cloud doctor, or run cluster-cloud doctor --cloud-region eu-west-1.",
  ],
  [
    `${run("inspect --versions")}.`,
    "Run cluster-cloud inspect --versions --cluster-id demo --cloud-region eu-west-1.",
  ],
  [`${run("sing loudly")}.`, 'Run the command "sing loudly".'],
  [`${run("sing")}, or ${command("sing")}`, "Run the sing command, or the sing command"],
  [moreDetail("-vv", "every request"), "Pass -vv to see every request."],
  // Text from elsewhere has no references.
  [outside(run("list")), outside("Run the list command")],
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
  expect((await lines()).filter((line) => /\s-v+ to\b/.test(line))).toEqual([]);
  const advice = `Check the network. ${moreDetail("-vv", "every request")}`;
  const failure = new ClusterError("engine-failed", "It failed.", { hint: advice });
  expect(withLibraryWords(failure)).toMatchObject({ hint: "Check the network." });
  const only = new ClusterError("engine-failed", "It failed.", { hint: moreDetail("-v", "more") });
  expect(withLibraryWords(only)).toMatchObject({ message: "It failed.", hint: undefined });
});

test.each([
  [`${run("inspect")} to see its nodes.`, "Call `Cluster.find` to see its nodes."],
  [`export it after ${command("create")} has ended`, "export it after `Cluster.create` has ended"],
  [`Wait (${run("wait", "run")}), then sync.`, "Wait (call `waitForCluster`), then sync."],
  [`First ${run("node start agent_0", "run")}`, "First call `start`"],
  [`${run("list")} to see all clusters.`, "Run the list command to see all clusters."],
  [`Set ${option("extraConfig")} or ${option("memory")}.`, "Set `clusterConfig` or `memory`."],
])("the library's words for %j are %j", (text, expected) => {
  expect(libraryWords(text)).toBe(expected);
});

test("an error's texts keep the marks of outside text in the library's words", () => {
  const message = `${option("timeout")} is ${outside("secret")}`;
  const revised = withLibraryWords(new ClusterError("deadline-passed", message)) as ClusterError;
  expect(messageOf(revised)).toBe(`\`timeoutMs\` is ${outside("secret")}`);
  expect(revised.message).toBe("`timeoutMs` is secret");
});
