/** The options of the backends, as the command line and the library read them. */
import { runCommand } from "../../../src/references.ts";
import { unmarked } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { readCloudOptions } from "../../../src/backend/cloud/options.ts";
import { readContainerOptions } from "../../../src/backend/container/options.ts";
import { readVmOptions } from "../../../src/backend/vm/options.ts";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { flagNames, Problems } from "../../../src/cli/options/problems.ts";
import { completionOffer } from "../../../src/cli/completion.ts";
import { parseCommandLine } from "../../../src/cli/options/parse.ts";
import type { BackendKind } from "../../../src/backend/contract.ts";
import { programName } from "../../../src/commands/backend-options.ts";
import { programFor } from "../../../src/commands/program.ts";
import { ClusterError } from "../../../src/errors.ts";

const kinds = [cloudKind, containerKind, vmKind];

test.each([
  ["rocky-9", undefined],
  ["almalinux-8", undefined],
  ["debian-12", "debian-12 comes without SELinux"],
])("on virtual machines, the problem of SELinux on %s is %p", (distribution, problem) => {
  expect(vmKind.options.linuxDistribution.selinuxProblem(distribution)).toBe(problem);
});
const kindOf = (name: string): BackendKind => kinds.find((kind) => programName(kind) === name)!;

/** What `create` finds wrong with options of the kind, and what it makes of good ones. */
async function fromCommandLine(kind: BackendKind, words: readonly string[]) {
  const program = programFor(kind);
  const create = program.commands.find(({ name }) => name === "create")!;
  const command = { ...create, positionals: {} };
  const problems = new Problems("", flagNames(program));
  const invocation = { cwd: "/home/me", environment: { TMPDIR: "/tmp" } };
  const argv = ["--variant", "oss", ...words];
  const { values } = await parseCommandLine(command, argv, {
    invocation,
    problems,
    hide: () => {},
  });
  const parsed = await kind.parse(values);
  for (const problem of parsed.problems ?? []) problems.add(problem);
  return { problems: problems.all.toSorted(), options: parsed.value };
}

/** What the library finds wrong with the same options, with flags in place of its names. */
function fromLibrary(kind: BackendKind, read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ClusterError) || error.id !== "bad-usage") throw error;
    return (ClusterError.marked(error).facts["problems"] as readonly string[])
      .map((text) => unmarked(flagNames(programFor(kind))(text)))
      .toSorted();
  }
}

test.each([
  [
    "cluster-cloud",
    "--cloud-region here --instance-type large --subnet one --image mine --ssh-user= --admin-cidr all --custom-tag aws:a:1 --linux-distribution plan-9",
    () =>
      readCloudOptions({
        region: "here",
        instanceType: "large",
        subnetId: "one",
        image: { id: "mine", user: "" },
        adminCidrs: ["all"],
        customTags: { "aws:a": "1" },
        linuxDistribution: "plan-9",
      }),
  ],
  [
    "cluster-container",
    "--engine runc --memory much --cpus=-1 --node-image=-v --custom-volume x --linux-distribution plan-9",
    () =>
      readContainerOptions({
        engine: "runc" as "docker",
        memory: "much",
        cpus: -1,
        nodeImage: "-v",
        customVolumes: ["x"],
        linuxDistribution: "plan-9",
      }),
  ],
  [
    "cluster-vm",
    "--memory 1k --cpus 1.5 --disk-size 20 --image https://example.com/disk --linux-distribution plan-9",
    () =>
      readVmOptions({
        memory: "1k",
        cpus: 1.5,
        diskSize: "20",
        image: "https://example.com/disk",
        linuxDistribution: "plan-9",
      }),
  ],
])(
  "%s: all of %p gets the same errors from the command line and the library",
  async (program, line, read) => {
    const words = line.split(" ");
    const { problems } = await fromCommandLine(kindOf(program), words);
    expect(problems).toEqual(fromLibrary(kindOf(program), read).slice());
    expect(problems).toHaveLength(line.match(/ --|^--/g)!.length);
  },
);

test.each([
  [
    "cluster-cloud",
    "--instance-type c5.large --subnet subnet-01234567 --image ami-01234567 --ssh-user me --admin-cidr 10.0.0.0/8 --custom-tag a:1:2",
    readCloudOptions({
      region: "us-west-2",
      instanceType: "c5.large",
      subnetId: "subnet-01234567",
      image: { id: "ami-01234567", user: "me" },
      adminCidrs: ["10.0.0.0/8"],
      customTags: { a: "1:2" },
    }),
  ],
  ["cluster-cloud", "", readCloudOptions({ region: "us-west-2" })],
  [
    "cluster-container",
    "--memory 2g --cpus 0.5 --node-image a:1 --custom-volume /tmp:/b:ro",
    readContainerOptions({
      memory: "2g",
      cpus: 0.5,
      nodeImage: "a:1",
      customVolumes: ["/tmp:/b:ro"],
    }),
  ],
  ["cluster-container", "", readContainerOptions({})],
  [
    "cluster-vm",
    `--memory 1g --cpus 4 --disk-size 30g --image ../../dev/null --image-sha256 ${"a".repeat(64)}`,
    readVmOptions({
      memory: "1g",
      cpus: 4,
      diskSize: "30g",
      image: "/dev/null",
      imageSha256: "a".repeat(64),
    }),
  ],
  ["cluster-vm", "", readVmOptions({})],
])("%s: %p means the same as in the library", async (program, line, { options }) => {
  const words = line.split(" ").filter((word) => word !== "");
  const read = await fromCommandLine(kindOf(program), words);
  expect(read).toEqual({ problems: [], options });
});

/** What a shell is offered at the end of these words: the first words of lines, or what a command prints. */
function offered(kind: BackendKind, line: string): readonly (string | undefined)[] {
  const { lines, command } = completionOffer(programFor(kind), ["fish", ...line.split(" ")]);
  return command ?? lines.map((each) => each.split("\t")[0]);
}

test.each<[string, BackendKind, readonly string[]]>([
  ["create --engine ", containerKind, ["words", "docker", "podman"]],
  ["create --image ", vmKind, ["files"]],
  ["create --disk-size ", vmKind, ["words"]],
  ["create ", vmKind, ["files"]],
  ["create --from a:b ", vmKind, ["words"]],
  ["node ", cloudKind, ["words", "restart"]],
  ["node restart ", containerKind, ["inspect", "--output", "names"]],
  [
    "node restart -c demo --engine podman --output json all ",
    containerKind,
    ["inspect", "--output", "names", "--cluster-id=demo", "--engine=podman"],
  ],
  ["snapshot create -c demo ", containerKind, ["snapshot", "--quiet", "list", "--cluster-id=demo"]],
  ["snapshot save installed ", vmKind, ["files"]],
  ["pack ./etcd ", vmKind, ["words"]],
  [
    "destroy --engine podman --output json -c ",
    containerKind,
    ["list", "--quiet", "--engine=podman"],
  ],
  ["web --cloud-region eu-west-1 -c ", cloudKind, ["list", "--quiet", "--cloud-region=eu-west-1"]],
])("after %j a shell is offered what fits", (line, kind, words) => {
  expect(offered(kind, line)).toEqual(words);
});

test("a shell is offered groups of nodes only where several nodes may be named", () => {
  const linesAfter = (line: string) =>
    completionOffer(programFor(containerKind), ["fish", ...line.split(" ")]).lines;
  const groups = ["words", "all", "masters", "agents", "public_agents"];
  for (const line of ["node restart ", "run --node m", "fault partition --between ", "logs -n "])
    expect(linesAfter(line)).toEqual(groups);
  expect(linesAfter("forward ")).toEqual(["words"]);
});

test("a shell is not offered options that another one replaces", () => {
  expect(offered(vmKind, "create --f")).toEqual(
    expect.arrayContaining(["--agents", "--from", "--help"]),
  );
  const rest = offered(vmKind, "create --from a:b --a");
  expect(rest).toEqual(expect.arrayContaining(["--wait", "--help"]));
  for (const replaced of ["--agents", "--image", "--from"]) expect(rest).not.toContain(replaced);
});

test("a hint repeats the scope, but no other option of the backend", () => {
  const given = { region: "eu-west-1", instanceType: "c5.large", image: "ami-1" };
  expect(flagNames(programFor(cloudKind), given)(`${runCommand("create")} again.`)).toBe(
    "Run cluster-cloud create --cloud-region eu-west-1 again.",
  );
});

test("files of this computer must be there", async () => {
  const image = await fromCommandLine(vmKind, ["--image", "disk.img"]);
  expect(image.problems).toEqual(["--image: /home/me/disk.img does not exist"]);
});
