/**
 * The README's clusters, and the pages "Bring your own platform", "Test a platform" and "Use your own tools", word by word: in one empty folder,
 * without anything of this repository but the program and the files that a page names, with an image that is like Debian's.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, readdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { findNode } from "../support/find-node.ts";
import { executablePath, repository } from "./support/executable.ts";
import { nameDebianBase } from "./support/published-debian.ts";
import { type TriedExample, missingLine, triedExamples } from "./support/readme.ts";
import { tryShell } from "./support/shell.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";
import { docker } from "./support/test-containers.ts";
import { serveOnLoopback } from "../support/loopback-server.ts";

const limitMs = 900_000;
/** What the README's examples print at least. */
const printed: Readonly<Record<string, string>> = {
  "first cluster": "agent-…\nagent-…\n",
  "own platform": 'Cluster "default" is ready after …, … after its creation.\n',
};
const readme = (await triedExamples("README.md")).filter(({ name }) => name in printed);
const page = await triedExamples("src/platform/folder/README.md");
const testing = await triedExamples("src/cluster/faults/README.md");
const inPytest = await triedExamples("src/cluster/faults/README.md", "tried with pytest");
const tools = await triedExamples("src/commands/tools/README.md");
const toolsLack = await lackOfTools();
/** The pages' commands name no cluster. */
const clusterId = "default";

const state: {
  folder?: string;
  environment?: Readonly<Record<string, string>>;
  before: ReadonlySet<string>;
} = {
  before: new Set(),
};
const opened = new AsyncDisposableStack();

/** Names of Docker's images that these tests could make. */
const images = async (): Promise<readonly string[]> =>
  (await docker(["images", "--format={{.Repository}}:{{.Tag}}"]))
    .split("\n")
    .filter((name) => /^localhost\/cluster-e2e-node:debian-12-folder-|^debian:12$/.test(name));

/** Names of the containers of such a cluster, also of somebody else's. */
const containersOfDefault = async (): Promise<string> =>
  (
    await docker([
      "ps",
      "--all",
      `--filter=label=cluster-e2e.cluster-id=${clusterId}`,
      "--format={{.Names}}",
    ])
  ).trim();

beforeAll(async () => {
  if ((await containersOfDefault()) !== "")
    throw new Error(`Docker already has a cluster "${clusterId}"`);
  state.before = new Set(await images());
  const folder = opened.use(await temporaryFolder()).path;
  const [bin, home, work] = ["bin", "home", "work"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [bin, home, work]) await mkdir(each);
  await symlink(executablePath("cluster-container"), join(bin, "cluster-container"));
  const server = serveOnLoopback(
    ({ url }) => new Response(Bun.file(join(work, basename(new URL(url).pathname)))),
  );
  opened.defer(async () => server.stop(true));
  const path = [
    bin,
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
  ].join(":");
  state.folder = work;
  // The pages show long lines whole.
  state.environment = {
    PATH: path,
    HOME: home,
    TMPDIR: folder,
    DOWNLOADS: server.url.origin,
    COLUMNS: "10000",
    LANG: "C.UTF-8",
    NO_COLOR: "1",
  };
}, limitMs);

afterAll(async () => {
  if (state.folder !== undefined && (await containersOfDefault()) !== "")
    await paste("cluster-container destroy");
  await opened.disposeAsync();
  // examples.test.ts, which may run at the same time, uses such images too.
  for (const name of await images())
    if (!state.before.has(name)) await docker(["rmi", name]).catch(() => {});
});

/** Runs lines as a user's shell would after `cd`. */
async function paste(lines: string) {
  const variables = Object.entries(state.environment!).map(([name, value]) => `${name}=${value}`);
  return tryShell('exec env -i "$@"', ["env", ...variables, "sh", "-euc", lines], state.folder!);
}

async function tryExample({ lines, status, output: shown }: TriedExample): Promise<void> {
  await nameDebianBase("12");
  const { status: found, output } = await paste(lines);
  expect({ status: found, missing: missingLine(shown.trim(), output) }, output).toEqual({
    status,
    missing: undefined,
  });
}

describe("the README's clusters", () => {
  test.each(readme.map((example) => [example.name, example] as const))("%s", async (_, example) => {
    await tryExample({ ...example, output: printed[example.name]! });
    expect(await containersOfDefault()).toBe("");
  });
});

describe("the page, in its order", () => {
  test("has examples, and shows what they print", () => {
    expect(readme).toHaveLength(Object.keys(printed).length);
    expect(page.length).toBeGreaterThan(10);
    expect(page.filter(({ output }) => output !== "").length).toBeGreaterThan(8);
    expect(missingLine("a …\nb\n…\nc", "b\n a  1\nx\nb\nc")).toBeUndefined();
    expect(missingLine("a …\nb\nc", "a 1\nc\nb")).toBe("c");
  });

  test.each(page.map((example) => [example.name, example] as const))("%s", async (_, example) => {
    await tryExample(example);
  });

  test("leaves no cluster", async () => {
    expect(await containersOfDefault()).toBe("");
  });
});

describe("the page about testing a platform, in its order", () => {
  test.each(testing.map((example) => [example.name, example] as const))(
    "%s",
    async (_, example) => {
      await tryExample(example);
    },
  );

  test("has examples, and leaves no cluster", async () => {
    expect(testing.length).toBeGreaterThan(6);
    expect(await containersOfDefault()).toBe("");
  });
});

/** What is missing for the page about other tools. */
async function lackOfTools(): Promise<string | undefined> {
  const programs = ["ansible-playbook", "clush", "pdsh", "parallel-ssh", "jq", "watch", "npx"];
  const missing = programs.filter((name) => Bun.which(name, { PATH: "/usr/bin:/bin" }) === null);
  const python = Bun.spawn(["/usr/bin/python3", "-c", "import pytest, testinfra"], {
    stderr: "ignore",
  });
  if ((await python.exited) !== 0) missing.push("testinfra");
  if ((await findNode()) === undefined) missing.push("Node 22.15");
  return missing.length === 0 ? undefined : `missing: ${missing.join(", ")}`;
}

/** Copies a file of the page into the reader's folder. */
async function copyFromPage(name: string): Promise<void> {
  const source = Bun.file(join(repository, "src", "commands", "tools", name));
  await Bun.write(join(state.folder!, name), source);
}

/** What the reader has installed for Vitest. */
async function installVitest(): Promise<void> {
  const packages = join(state.folder!, "node_modules");
  await mkdir(packages);
  await symlink(repository, join(packages, "cluster-e2e"));
  await symlink(join(repository, "node_modules", "vitest"), join(packages, "vitest"));
  await mkdir(join(packages, ".bin"));
  await symlink("../vitest/vitest.mjs", join(packages, ".bin", "vitest"));
  await symlink((await findNode())!, join(state.folder!, "..", "bin", "node"));
}

/** What a test adds to an example, while its cluster or its files are there. */
const besides: Readonly<Record<string, () => Promise<void>>> = {
  json: async () => {
    const text = await Bun.file(join(repository, "src/commands/tools/README.md")).text();
    const [, lines = ""] = /^<!-- watched -->\n\n```sh\n(.*?)^```$/ms.exec(text) ?? [];
    const watching = paste(`export TERM=xterm; ${lines}`);
    const ended = watching.then(() => true);
    // It compares with its first look, which may come after a change.
    for (const verb of ["stop", "start", "stop", "start", "stop", "start"]) {
      expect(await paste(`cluster-container node ${verb} master_2`)).toMatchObject({ status: 0 });
      if (await Promise.race([ended, Bun.sleep(5_000).then(() => false)])) break;
    }
    expect((await watching).status).toBe(0);
    expect(
      (await paste("cluster-container node start master_2; cluster-container wait")).status,
    ).toBe(0);
  },
  include: async () => {
    const config = 'echo "Include $HOME/.ssh/clusters/*" >"$HOME/.ssh/config"';
    const login = `${config}; ssh -F "$HOME/.ssh/config" master-0.${clusterId} hostname`;
    expect(await paste(login)).toEqual({ status: 0, output: "master-0\n" });
  },
  pytest: async () => {
    await Bun.write(
      join(state.folder!, "test_failing.py"),
      "def test_fails(cluster):\n    assert cluster.hosts() == []\n",
    );
    const { status, output } = await paste("python3 -m pytest test_failing.py");
    expect({ status, failed: output.includes("1 failed") }, output).toEqual({
      status: 1,
      failed: true,
    });
    expect(await readdir(join(state.folder!, "logs", "test_fails"))).toContain(
      "master_2.journal.txt",
    );
  },
  vitest: async () => {
    const lines = [
      'import { expect } from "vitest";',
      'import { clusterTest } from "./cluster-test.mts";',
      'clusterTest("fails too", async ({ cluster }) => expect(cluster.masters).toEqual([]));',
    ];
    await Bun.write(join(state.folder!, "failing.test.mts"), lines.join("\n"));
    const { status, output } = await paste("npx vitest run failing");
    expect({ status, failed: output.includes("1 failed") }, output).toEqual({
      status: 1,
      failed: true,
    });
    expect(await readdir(join(state.folder!, "logs", "fails-too"))).toContain(
      "master_2.journal.txt",
    );
  },
};

describe.skipIf(toolsLack !== undefined)(
  `the page about other tools, in its order (${toolsLack ?? "here"})`,
  () => {
    beforeAll(async () => {
      const built = await tryShell("exec bun run build:library", [], repository);
      expect(built.status, built.output).toBe(0);
      await installVitest();
      for (const name of ["conftest.py", "cluster-test.mts"]) await copyFromPage(name);
    }, limitMs);

    test.each(tools.map((example) => [example.name, example] as const))(
      "%s",
      async (name, example) => {
        await tryExample(example);
        await besides[name]?.();
      },
    );

    test("the failover test of the page about testing a platform", async () => {
      expect(inPytest).toHaveLength(1);
      for (const example of inPytest) await tryExample(example);
    });

    test("has examples, and leaves no cluster", async () => {
      expect(tools.length).toBeGreaterThan(8);
      expect(await containersOfDefault()).toBe("");
      expect((await paste("cluster-container list --quiet")).output).not.toContain("pytest-");
    });
  },
);
