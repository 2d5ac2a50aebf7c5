/** The library in another program, on real machines: its sources under Bun, and its build under Node. */
import { expect, test } from "bun:test";
import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findNode } from "../support/find-node.ts";
import { buildArtifact } from "./support/artifacts.ts";
import { repository } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const examples = join(repository, "test", "e2e", "example");
const example = join(examples, "library.ts");
const license = "license-0123456789-not-to-be-seen";
const { backend: cloud, artifact } = shareBackend(async () => startTestCloud("container"));

const node = await findNode();

// Shows R79.
test("the example runs a job under Bun and leaves nothing", async () => {
  const ran = await run([process.execPath, example, artifact()]);
  expect(ran.stderr).toContain("master_0: Start installation: done");
  expectJob(ran);
  await expectNothingLeft();
});

// Shows R18.
test.skipIf(node === undefined)(
  "a consumer and the examples of the page type-check against the built library, which runs a job under Node",
  async () => {
    expect((await run([process.execPath, "run", "build:library"])).status).toBe(0);
    const consumer = await makeConsumer();
    const tsc = join(repository, "node_modules", ".bin", "tsc");
    expect(await run([process.execPath, "--bun", tsc, "--project", consumer])).toMatchObject({
      status: 0,
      stdout: "",
    });
    const ran = await run([node!, join(consumer, "library.js"), artifact()]);
    expectJob(ran);
    await expectNothingLeft();
  },
);

test("an enterprise cluster knows its superuser, and a body that fails leaves nothing", async () => {
  const enterprise = await buildArtifact("enterprise", cloud().folder);
  const ran = await run([
    process.execPath,
    join(examples, "library-enterprise.ts"),
    enterprise,
    license,
  ]);
  expect(ran.stdout, ran.stderr).toBe(
    [
      "wrong password: login-refused",
      "nobody: 65534",
      "root: root",
      "not root: admin",
      "killed: 137",
      "bytes: 00 ff 0a",
      "failing: remote-command-failed",
      "logs: true",
      "",
    ].join("\n"),
  );
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain("The body's own error");
  expect(ran.stderr).not.toContain(license);
  await expectNothingLeft();
});

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function expectJob({ status, stdout, stderr }: Ran): void {
  expect(stdout, stderr).toMatch(
    /^The job ran on ip-[\d-]+\.\nagent_0: slurmd is active \(status 0\)\.\npublic_agent_0: slurmd is active \(status 0\)\.\n$/,
  );
  expect(status, stderr).toBe(0);
}

async function expectNothingLeft(): Promise<void> {
  expect(await cloud().machines()).toEqual([]);
  const groups = (await cloud().control("groups")) as readonly { readonly groupName: string }[];
  expect(groups.filter(({ groupName }) => groupName !== "default")).toEqual([]);
}

async function run(argv: readonly string[]): Promise<Ran> {
  const child = Bun.spawn([...argv], {
    cwd: repository,
    env: { PATH: process.env["PATH"] ?? "", HOME: cloud().folder, ...cloud().environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 450_000,
    killSignal: "SIGTERM",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status, stdout, stderr };
}

/** The programs on the library's page. */
async function pageExamples(): Promise<readonly string[]> {
  const page = await Bun.file(join(repository, "src", "README.md")).text();
  const blocks = page
    .split("```ts\n")
    .slice(1)
    .map((text) => text.split("```")[0]!);
  const programs = blocks.filter((text) => text.startsWith("import "));
  expect(programs.length).toBeGreaterThan(1);
  return programs;
}

/** A project of somebody else's, with the package installed, as strict as TypeScript gets. */
async function makeConsumer(): Promise<string> {
  const folder = join(cloud().folder, "consumer");
  await mkdir(join(folder, "node_modules", "@types"), { recursive: true });
  await symlink(repository, join(folder, "node_modules", "cluster-e2e"));
  await symlink(
    join(repository, "node_modules", "@types", "node"),
    join(folder, "node_modules", "@types", "node"),
  );
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
  };
  const pages = await Promise.all(
    (await pageExamples()).map(async (text, index) => {
      await writeFile(join(folder, `page-${index}.ts`), text);
      return `page-${index}.ts`;
    }),
  );
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["library.ts", ...pages] }),
  );
  await copyFile(example, join(folder, "library.ts"));
  return folder;
}
