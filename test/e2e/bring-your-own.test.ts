/**
 * The README's clusters, and the pages "Bring your own platform" and "Test a platform", word by word: in one empty folder, without anything of
 * this repository but the program, with an image that is like Debian's.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { executablePath } from "./support/executable.ts";
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
