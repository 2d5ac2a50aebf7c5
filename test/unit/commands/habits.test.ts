/** What people type because other programs understand it. */
import { expect, test } from "bun:test";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { completionOffer } from "../../../src/cli/completion.ts";
import { withoutHabits } from "../../../src/cli/habits.ts";
import { commandHelp, programHelp } from "../../../src/cli/help/help.ts";
import { parseCommandLine } from "../../../src/cli/options/parse.ts";
import { flagNames, Problems } from "../../../src/cli/options/problems.ts";
import { programFor } from "../../../src/commands/program.ts";

const [cloud, container, vm] = [cloudKind, containerKind, vmKind].map(programFor) as [
  Program,
  Program,
  Program,
];
type Program = ReturnType<typeof programFor>;

/** The values and the problems of a command line, including those that `check` finds. */
async function read(line: string, program = container) {
  const [name = "", ...argv] = await withoutHabits(program, line.split(" "));
  const command = program.commands.find((each) => each.name === name);
  if (command === undefined) return { name, values: {}, problems: [] };
  const problems = new Problems("", flagNames(program));
  const invocation = { cwd: "/tmp", environment: {} };
  const reader = { invocation, problems, hide: () => {}, habits: await program.habits?.() };
  const { values } = await parseCommandLine(command, argv, reader);
  await command.check?.(values, problems, { ...invocation, isTerminal: {} } as never);
  return { name, values, problems: problems.all };
}

test.each([
  ["help", "--help"],
  ["help create", "create --help"],
  ["help ls", "list --help"],
  ["version", "--version"],
  ["-V", "--version"],
  ["ls -q", "list -q"],
  ["ps", "list"],
  ["rm -c x", "destroy -c x"],
  ["delete", "destroy"],
  ["-c x inspect", "inspect -c x"],
  ["-v --cluster-id=list wait --timeout 3m", "wait -v --cluster-id=list --timeout 3m"],
  ["-c list inspect", "inspect -c list"],
  ["-c x list", "list -c x"],
  ["-c x nonsense -q", "nonsense"],
  ["--output=json -vv lst", "lst"],
  ["-c x", "--"],
  ["-c x --nonsense lst", "-c x --nonsense lst"],
  ["--vers", "--vers"],
  ["--help create", "--help create"],
  ["run ls -c x", "run ls -c x"],
])("%s means %s", async (typed, meant) => {
  expect((await withoutHabits(container, typed.split(" "))).join(" ")).toBe(meant);
});

test("templates are removed by the names that remove clusters", async () => {
  for (const word of ["rm", "delete", "remove"])
    expect(await read(`templates ${word}`, vm)).toMatchObject({
      values: { action: "remove" },
      problems: [],
    });
});

test("where a program lacks a command, its other names lead to the reason", async () => {
  expect(await withoutHabits(cloud, ["rm"])).toEqual(["destroy"]);
  expect(cloud.missingCommands?.has("destroy")).toBe(true);
});

test.each([
  ["list -o json", { output: "json" }],
  ["list --json", { output: "json" }],
  ["inspect -cdefault", { clusterId: "default" }],
  ["inspect -vcx", { clusterId: "x", verbose: 1 }],
  ["inspect -c=x", { clusterId: "x" }],
  ["inspect demo", { clusterId: "demo" }],
  ["destroy demo", { clusterId: "demo" }],
  ["run -cx grep -cfoo", { clusterId: "x", words: ["grep", "-cfoo"] }],
  ["run ls -o json --json", { words: ["ls", "-o", "json", "--json"] }],
  ["snapshot ls", { action: "list" }],
  ["snapshot rm one", { action: "delete", name: "one" }],
  ["snapshot delete one", { action: "delete", name: "one" }],
])("%s is understood", async (line, values) => {
  expect(await read(line)).toMatchObject({ values, problems: [] });
});

test.each([
  ["run --name x ls", ["--name: no such option; did you mean --cluster-id?"]],
  ["inspect --id x", ["--id: no such option; did you mean --cluster-id?"]],
  ["run -n agent_0 ls", ["-n: no such option; did you mean --node?"]],
  ["cp -r ./d master_0:/tmp/", ["-r: not needed, since cp copies folders by itself"]],
  ["run -it bash", ["-it: not needed, since run passes the terminal through by itself"]],
  [
    "list -c x",
    ["-c: list shows all clusters; for one, type cluster-container inspect -c CLUSTER_ID"],
  ],
  [
    "list --cluster-id=x",
    [expect.stringContaining("type cluster-container inspect -c CLUSTER_ID")],
  ],
  [
    "inspect one two",
    [expect.stringContaining('"one": unexpected'), expect.stringContaining('"two": unexpected')],
  ],
  ["inspect -c one two", [expect.stringContaining("--cluster-id")]],
  ["snapshot list one two", ["NAME: list takes no name", "FILE: only allowed with save"]],
  // A value that is present but invalid is not also a missing one.
  ["snapshot create ABC", [expect.stringMatching(/^NAME: "ABC" is not a snapshot's name: use/)]],
  ["destroy --all -y -c ///", [expect.stringMatching(/^--cluster-id: /)]],
  ["create --variant oss --agents -1 /etc/hostname", [expect.stringMatching(/^--agents: "-1"/)]],
  [
    "create --variant oss --agents -1 --masters -3 /etc/hostname",
    [expect.anything(), expect.anything()],
  ],
])("%s says what to type", async (line, problems) => {
  expect((await read(line)).problems).toEqual(problems);
});

test("half of an own image is missing only if it wasn't given", async () => {
  const line = "create --variant oss --ssh-user x /etc/hostname";
  expect((await read(`${line} --image ami-1`, cloud)).problems).toEqual([
    expect.stringMatching(/^--image: "ami-1"/),
  ]);
  expect((await read(line, cloud)).problems).toEqual([
    expect.stringMatching(/^--image and --ssh-user: /),
  ]);
});

test.each([
  ["create --nodes 3 example:etcd", ["--nodes: no such option; did you mean --masters?"]],
  ["create --image x example:etcd", ["--image: no such option; did you mean --node-image?"]],
  ["run -e A=B ls", ["-e: no such option; did you mean --env?"]],
  [
    "create -p 80:80 example:etcd",
    ["-p: not needed; to reach a port of a node, type cluster-container forward NODE PORT"],
  ],
])("%s says which option is meant", async (line, problems) => {
  expect((await read(line)).problems).toEqual(problems);
});

const explained =
  "ssh shell exec top status get describe ip port ports port-forward tunnel up apply restart reboot";

test.each(explained.split(" "))(
  "%s has a hint that names a command of each program",
  async (word) => {
    for (const { name, habits: load, commands } of [cloudKind, containerKind, vmKind].map(
      programFor,
    )) {
      expect(commands.some((command) => command.name === word)).toBe(false);
      const habits = await load?.();
      expect(habits?.hints.get(word)).toContain(`type ${name} `);
    }
  },
);

test("the help mentions no habit", async () => {
  const habits = await container.habits?.();
  const words = [
    ...(habits?.words.keys() ?? []),
    ...(habits?.options.keys() ?? []),
    ...(habits?.meant.keys() ?? []),
  ];
  const own: readonly (string | undefined)[] = container.commands.flatMap(({ options }) =>
    Object.values(options).flatMap(({ flag, short }) => [flag, short]),
  );
  const help =
    programHelp(container, 80) +
    container.commands.map((each) => commandHelp(container, each, 80)).join("");
  const listed = words.filter((word) => new RegExp(`^ +(?:-., )?${word}\\b`, "m").test(help));
  expect(listed.filter((word) => !own.includes(word))).toEqual([]);
});

test("nodes and snapshots complete, with the cluster that the line names", async () => {
  const habits = await container.habits?.();
  const offer = (line: string) =>
    completionOffer(container, ["fish", ...line.split(" ")], habits).command;
  expect(offer("run -c x --node ")).toEqual(["inspect", "--output", "names", "--cluster-id=x"]);
  expect(offer("snapshot restore -c x ")).toEqual([
    "snapshot",
    "--quiet",
    "list",
    "--cluster-id=x",
  ]);
  expect(offer("rm -c ")).toEqual(["list", "--quiet"]);
});
