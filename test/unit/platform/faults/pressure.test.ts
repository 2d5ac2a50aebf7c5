/** A node's limits, as control groups state them, and what a container without them is refused. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import pressureFile from "../../../../src/platform/faults/pressure.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const gigabyte = 2 ** 30;

/** A computer with 4 processors and 8 GB, of which 6 are free. */
const computer = `
fail() { echo "$*"; exit 1; }
nproc() { echo 4; }
meminfo() { case $1 in MemTotal) echo 8388608 ;; MemAvailable) echo 6291456 ;; esac; }
sleep() { :; }
mount() { echo "mount $3 $4"; }
head() { :; }
`;

interface Node {
  /** Of its first process. */
  readonly paths: string;
  readonly files: Readonly<Record<string, string>>;
}

const machine: Node = {
  paths: "0::/init.scope\n",
  files: { "cgroup.controllers": "cpu memory\n", "init.scope/memory.max": "max\n" },
};

const unified: Node = {
  paths: "0::/init.scope\n",
  files: {
    ...machine.files,
    "cpu.max": "150000 100000\n",
    "cpu.stat": "usage_usec 5000000\nuser_usec 1\n",
    "init.scope/cpu.max": "max 100000\n",
    "memory.max": `${2 * gigabyte}\n`,
    "memory.current": `${gigabyte}\n`,
    "memory.stat": `anon 1\nfile ${gigabyte / 2}\nshmem ${gigabyte / 4}\n`,
  },
};

const separate: Node = {
  paths: [
    "9:name=systemd:/docker/abc/init.scope",
    "4:cpuset:/docker/abc",
    "3:memory:/docker/abc",
    "2:cpuacct,cpu:/docker/abc",
    "",
  ].join("\n"),
  files: {
    "cpu/docker/abc/cpu.cfs_quota_us": "50000\n",
    "cpu/docker/abc/cpu.cfs_period_us": "100000\n",
    "cpu/docker/cpu.cfs_quota_us": "-1\n",
    "cpuacct/docker/abc/cpuacct.usage": "5000000000\n",
    "memory/docker/abc/memory.limit_in_bytes": `${gigabyte}\n`,
    "memory/docker/abc/memory.usage_in_bytes": `${gigabyte / 2}\n`,
    "memory/docker/abc/memory.stat": `shmem 9\ntotal_cache ${gigabyte / 4}\ntotal_shmem 0\n`,
    "memory/docker/memory.limit_in_bytes": "9223372036854771712\n",
  },
};

/** The node's own part of a tree, as engines show it by themselves: the path does not exist there. */
const own: Node = {
  paths: separate.paths,
  files: Object.fromEntries(
    Object.entries(separate.files).map(([path, text]) => [path.replace("docker/abc/", ""), text]),
  ),
};

interface Given {
  readonly cpu?: number;
  readonly memory?: number;
  readonly sharers?: number;
}

async function onNode(
  { paths, files }: Node,
  line: string,
  { cpu = 0, memory = 0, sharers = 0 }: Given = {},
): Promise<string> {
  await using scratch = await scratchFolder();
  for (const [path, text] of Object.entries({ ...files, paths })) {
    await mkdir(dirname(join(scratch.path, path)), { recursive: true });
    await writeFile(join(scratch.path, path), text);
  }
  const values = {
    ID: "0123abcd",
    FOLDER: scratch.path,
    CPU: cpu,
    MEMORY: memory,
    SHARED: sharers === 0 ? "" : sharers,
  };
  const script = `${shellText(pressureFile, values)}${computer}
cgroups=${scratch.path} paths=${scratch.path}/paths
${line}`;
  const child = Bun.spawn(["sh", "-c", `set -eu\n${script}`], { stderr: "pipe" });
  const said = await new Response(child.stdout).text();
  expect(await new Response(child.stderr).text()).toBe("");
  return said.replaceAll(scratch.path, "");
}

test.each<[string, Node, string]>([
  ["a machine", machine, `${8 * gigabyte} / 4000`],
  ["a container", unified, `${2 * gigabyte} / 1500`],
  [
    "a container in the tree of its computer",
    separate,
    `${gigabyte} /memory/docker/abc / 500 /cpu/docker/abc`,
  ],
  ["a container that sees its own part of the tree", own, `${gigabyte} /memory / 500 /cpu`],
])("%s knows what it has", async (_, node, expected) => {
  const found = await onNode(node, 'echo "$(memory) / $(processors)"');
  expect(found.trim().split(/ +/)).toEqual(expected.split(" "));
});

test("what counts as used is not what the kernel would give back", async () => {
  expect(await onNode(machine, "memory_used ''")).toBe(`${2 * gigabyte}\n`);
  expect(await onNode(unified, 'memory_used "$cgroups"')).toBe(`${0.75 * gigabyte}`);
  expect(await onNode(separate, 'memory_used "$cgroups/memory/docker/abc"')).toBe(
    `${0.25 * gigabyte}`,
  );
});

test("shares are of the limit", async () => {
  const measured = await onNode(
    separate,
    `hundredths() { cat "$cgroups/now"; }
echo 1000 >"$cgroups/now"
sleep() { echo 1100 >"$cgroups/now"; echo 5250000000 >"$cgroups/cpuacct/docker/abc/cpuacct.usage"; }
measure`,
    { cpu: 1, memory: 1 },
  );
  expect(measured).toMatch(/^memory=25\ncpu=50\ncomputer=\d+\n$/);
  expect(await onNode(machine, "measure")).toBe("");
});

test.each<[string, Node, Given, RegExp]>([
  ["a container without a CPU limit", machine, { cpu: 900, sharers: 1 }, /CPU limit/],
  ["a container without a memory limit", machine, { memory: 900, sharers: 1 }, /memory limit/],
  [
    "limits that together are more than the computer",
    unified,
    { cpu: 900, sharers: 3 },
    /^3 nodes/,
  ],
  [
    "memory that the computer lacks",
    unified,
    { memory: 900, sharers: 5 },
    /computer has too little/,
  ],
  ["memory that is used already", unified, { memory: 300, sharers: 1 }, /already/],
])("%s is refused", async (_, node, given, reason) => {
  expect(await onNode(node, "begin", given)).toMatch(reason);
});

test("memory that another fault fills is refused: the end of that one would take its part away", async () => {
  const line = 'mkdir "$FOLDER/b0000000.memory"; begin';
  expect(await onNode(machine, line, { memory: 800 })).toBe(
    "another fault fills its memory already\n",
  );
});

test("what is left up to the share is filled", async () => {
  const filled = Math.floor(2 * gigabyte * 0.8 - 0.75 * gigabyte);
  expect(await onNode(unified, "begin", { cpu: 900, memory: 800, sharers: 1 })).toBe(
    `mount -o size=${filled},mode=0700\n`,
  );
  expect(await onNode(machine, "begin", { cpu: 1000, memory: 950 })).toStartWith("mount");
});

test("one program for each processor is busy, and rests when it has used its share", async () => {
  const line = `sleep() { echo "rests after $1 s"; exit; }
keep_doing
wait`;
  expect(await onNode(unified, line, { cpu: 1 })).toBe("rests after 0.02 s\n".repeat(2));
});
