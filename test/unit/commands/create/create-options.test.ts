import type { BackendKind } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { parseCommandLine } from "../../../../src/cli/options/parse.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import { createOptions } from "../../../../src/commands/create/create-options.ts";
import { completionOffer } from "../../../../src/cli/completion.ts";
import { commandHelp } from "../../../../src/cli/help/help.ts";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { programFor } from "../../../../src/commands/program.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** What `create` makes of these words, beside its required ones. */
async function parsed(words: readonly string[], cwd: string) {
  const create = programFor(cloudKind).commands.find(({ name }) => name === "create")!;
  const command = { ...create, positionals: {}, options: createOptions(cloudKind) };
  const problems = new Problems("");
  const invocation = { cwd, environment: { TMPDIR: cwd } };
  const argv = ["--variant", "oss", ...words];
  const { values } = await parseCommandLine(command, argv, {
    invocation,
    problems,
    hide: () => {},
  });
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
  const words =
    "--extra-config extra.yaml --workspace-dir work --genconf-dir genconf --masters 3".split(" ");
  const { values, problems } = await parsed(words, folder.path);
  expect(problems).toEqual([]);
  expect(values).toMatchObject({
    masters: 3,
    extraConfig: { a: 1 },
    workspaceDir: join(folder.path, "work"),
  });
});

test.each([
  ["--masters 0", '--masters: "0" is not a whole number from 1 to 1000'],
  ["--workspace-dir nowhere", /^--workspace-dir: .*nowhere/],
  [
    "--artifact-sha256 abc",
    '--artifact-sha256: "abc" is not a SHA-256 checksum, which has 64 hexadecimal digits',
  ],
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
  expect(values).toMatchObject({ artifactSha256: "ab".repeat(32), variant: "oss" });
});

/** What `cluster-vm create` makes of these words. */
async function parsedForVms(words: string) {
  const command = programFor(vmKind).commands.find(({ name }) => name === "create")!;
  const problems = new Problems("");
  const invocation = { cwd: "/tmp", environment: {} };
  const hidden: string[] = [];
  const hide = (secret: string): void => void hidden.push(secret);
  const { values } = await parseCommandLine(command, words.split(" "), {
    invocation,
    problems,
    hide,
  });
  return { values, problems: problems.all, hidden };
}

test("the secrets in a file's URL are hidden", async () => {
  const { hidden } = await parsedForVms("--from https://me:hunter22@h.example/cluster.zst");
  expect(hidden).toContain("hunter22");
});

test("a snapshot takes the place of the artifact and of everything that is told with it", async () => {
  const { values, problems } = await parsedForVms(
    "--from default:installed -c copy --wait --timeout 5m",
  );
  expect(problems).toEqual([]);
  expect(values).toMatchObject({
    from: { clusterId: "default", name: "installed" },
    clusterId: "copy",
    wait: true,
  });
  const words =
    "--variant oss --masters 3 --agents 2 --public-agents 0 --memory 4g --image /x --extra-config /y";
  const all = [...words.split(" ").filter((word) => word.startsWith("--")), "PLATFORM"];
  expect(
    (await parsedForVms(`--from default:installed ${words} ./artifact.sh`)).problems.toSorted(),
  ).toEqual(all.map((name) => `${name}: cannot be combined with --from`).toSorted());
});

test.each(["default:", ":installed", "default:Installed", "a:b:c"])(
  "--from %s is no snapshot",
  async (given) => {
    expect((await parsedForVms(`--from ${given}`)).problems).toEqual([
      `--from: "${given}" is not a cluster id and a snapshot's name, such as default:installed`,
    ]);
  },
);

test.each([
  ["cluster.zst", { path: "/tmp/cluster.zst", shown: "cluster.zst" }],
  ["./default:installed", { path: "/tmp/default:installed", shown: "./default:installed" }],
  ["/var/cluster", { path: "/var/cluster", shown: "/var/cluster" }],
  ["https://example.com/cluster.zst", { url: "https://example.com/cluster.zst" }],
])("--from %s is a file", async (given, location) => {
  const { values, problems } = await parsedForVms(`--from ${given} --sha256 ${"AB".repeat(32)}`);
  expect(problems).toEqual([]);
  expect(values).toMatchObject({ from: { location }, sha256: "ab".repeat(32) });
});

test("help and completion know that a snapshot takes the artifact's place, on containers and virtual machines", () => {
  const helpOf = (kind: BackendKind): string => {
    const program = programFor(kind);
    return commandHelp(
      program,
      program.commands.find(({ name }) => name === "create")!,
      400,
    );
  };
  expect(helpOf(vmKind)).toContain("Usage: cluster-vm create [OPTIONS] [PLATFORM]\n");
  expect(helpOf(vmKind)).toContain("file:// URL (required without --from)");
  expect(helpOf(containerKind)).toContain("file:// URL (required without --from)");
  expect(helpOf(cloudKind)).not.toContain("--from");
  const { lines } = completionOffer(programFor(vmKind), [
    "zsh",
    "create",
    "--from",
    "default:installed",
    "--",
  ]);
  const offered = lines.map((line) => line.split("\t")[0]);
  expect(offered).toContain("--wait");
  expect(offered.filter((word) => /variant|masters|memory|from/.test(word!))).toEqual([]);
});

test.each([
  ["ex", ["example:bare", "example:etcd", "example:pacemaker", "example:slurm", "example:swarm"]],
  ["example:s", ["example:slurm", "example:swarm"]],
  ["", []],
  ["./ex", []],
])("%p is completed to examples, or to files", (word, examples) => {
  const { lines } = completionOffer(programFor(vmKind), ["zsh", "create", word]);
  expect(lines).toEqual(examples.length === 0 ? ["files"] : ["words", ...examples]);
});
