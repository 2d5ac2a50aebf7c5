/** The library, built for Node. test/e2e/library.test.ts uses it with real machines. */
import { expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import {
  buildLibrary,
  compileForNode,
  forNode,
  withoutPackages,
} from "../../../scripts/build-library.ts";
import { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { findNode } from "../../support/find-node.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const root = join(import.meta.dir, "..", "..", "..");
const dist = join(root, "dist");
await mkdir(dist, { recursive: true });

test("a source that needs Bun or a later Node than 22 is rejected", () => {
  const built = forNode(
    "system/a.js",
    "// Bun.which is not asked\nexport const a = AbortSignal.timeout(1);\n",
    "1",
  );
  expect(built).toBe(
    'import * as nodeSubstitutes from "../node.js";\n// Bun.which is not asked\nexport const a = nodeSubstitutes.timeoutSignal(1);\n',
  );
  expect(forNode("version.js", "export {};\n", "1.2")).toBe(
    'const CLUSTER_E2E_VERSION = "1.2";\nexport {};\n',
  );
  for (const line of [
    "Bun.spawn([]);",
    'import { $ } from "bun";',
    "await Array.fromAsync(a);",
    "import.meta.dir;",
  ]) {
    expect(() => forNode("ssh/a.js", `let a;\n${line}\n`, "1")).toThrow(
      `ssh/a.js is reached by the library, but not for Node 22:\n${line}`,
    );
  }
});

test.each([
  ["methods of iterators", "export const a = new Map([[1, 2]]).values().map(String);"],
  ["methods of matches", 'export const a = "a".matchAll(/a/g).map(String);'],
  ["Promise.try", "export const a = Promise.try(() => 1);"],
  ["set methods", "export const a = new Set([1]).union(new Set([2]));"],
  ["Bun", 'export const a = Bun.which("ssh");'],
])("a source that uses %s is not compiled for Node 22", async (_, line) => {
  const folder = await mkdtemp(join(dist, ".test-library-"));
  try {
    const [first, fine] = [join(folder, "new.ts"), join(folder, "fine.ts")];
    await writeFile(first, `${line}\n`);
    await writeFile(
      fine,
      'export const { promise: a } = Promise.withResolvers<number>();\nexport const b = URL.parse("x:y")?.href;\n',
    );
    const places = { outDir: join(folder, "out"), project: join(folder, "tsconfig.json") };
    await compileForNode({ first: relative(root, fine), ...places });
    expect(
      await compileForNode({ first: relative(root, first), ...places }).catch(String),
    ).toContain("new.ts(1,");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("types that depend on those of a package are rejected", () => {
  expect(withoutPackages("a.d.ts", 'import type { A } from "./b.js";\n')).toBe(
    'import type { A } from "./b.js";\n',
  );
  for (const text of [
    'import type { Tag } from "@aws-sdk/client-ec2";',
    'export declare const a: import("ssh2").Client;',
  ]) {
    expect(() => withoutPackages("a.d.ts", text)).toThrow(
      "the library's types lead to the package",
    );
  }
});

/** Nothing is built for `require`, by which Node 22.15 and later load it as it is: hence the profile. */
test("publint and arethetypeswrong find nothing amiss in the package", async () => {
  await using folder = await scratchFolder();
  await buildLibrary("0.0.0+test");
  for (const name of [
    "package.json",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "src",
    "dist/library",
  ])
    await cp(join(root, name), join(folder.path, name), { recursive: true });
  const run = async (...words: readonly string[]) => {
    const child = Bun.spawn([process.execPath, ...words], {
      cwd: folder.path,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [said, failed] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, said + failed]).toEqual([0, expect.any(String)]);
    return said;
  };
  const program = (name: string): readonly string[] => [
    "--bun",
    join(root, "node_modules", ".bin", name),
  ];
  const file = (await run("pm", "pack", "--quiet", "--ignore-scripts")).trim();
  expect(await run(...program("publint"), "run", file, "--strict")).toContain("All good!");
  const judged = await run(...program("attw"), file, "--profile", "esm-only", "--format", "json");
  expect(JSON.parse(judged)).toMatchObject({
    analysis: { packageName: "cluster-e2e", types: { kind: "included" } },
  });
});

const node = await findNode();

test.skipIf(node === undefined)(
  "the built library loads the cloud's SDK only when it is needed",
  async () => {
    const library = await buildLibrary("0.0.0+test");
    const program = `
    import { createRequire } from "node:module";
    const { Cluster, CloudBackend, ClusterError } = await import(${JSON.stringify(join(library, "index.js"))});
    const { version } = await import(${JSON.stringify(join(library, "version.js"))});
    const backend = new CloudBackend({ region: "us-west-2" });
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes("node_modules"));
    console.log(JSON.stringify([Cluster.name, ClusterError.name, backend.distribution, version, loaded]));
  `;
    const child = Bun.spawn([node!, "--input-type=module", "--eval", program], {
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
      "Cluster",
      "ClusterError",
      "centos-7",
      "0.0.0+test",
      [],
    ]);
  },
);

/** Each of these once ended with a TypeError under Node, in place of the error that a user can act on. */
test.skipIf(node === undefined)(
  "on the oldest Node, the built library masks secrets of every length, and names an engine that is far",
  async () => {
    const library = await buildLibrary("0.0.0+test");
    const from = (path: string): string => JSON.stringify(join(library, path));
    const program = `
    const { LineProgress } = await import(${from("library/runtime.js")});
    const { outside } = await import(${from("outside-text.js")});
    const { findReach } = await import(${from("backend/container/engine/find-reach.js")});
    const lines = [];
    const progress = new LineProgress((line) => lines.push(line));
    for (const secret of ["ab", "a longer secret", "\\ud800 half"]) progress.hide(secret);
    progress.warn("ab: " + outside("ab, abc, a+longer+secret"));
    const engine = { kind: { title: "Docker", advice: {}, addressWords: ["x"] }, ask: async () => "tcp://192.0.2.1:2375" };
    const reach = findReach(engine, { isRootless: false }, "darwin", new AbortController().signal);
    console.log(JSON.stringify([...lines, await reach.catch(({ id }) => id)]));
  `;
    const child = Bun.spawn([node!, "--input-type=module", "--eval", program], {
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual([
      "Warning: ab: ***, abc, ***",
      { reach: "engine", why: "Docker runs in a virtual machine" },
    ]);
  },
);

/** Run by Node: uses a cluster with many nodes, and prints Node's warnings about listeners. */
const crowdedProgram = `
  const [index, region, environment] = process.argv.slice(-3);
  const { Cluster, CloudBackend } = await import(index);
  process.on("warning", ({ name }) => name === "MaxListenersExceededWarning" && console.log(name));
  const backend = new CloudBackend({ region, linuxDistribution: "debian-12", environment: JSON.parse(environment) });
  const { signal: cancelSignal } = new AbortController();
  const request = { variant: "oss", agents: 11, publicAgents: 0, cancelSignal };
  const cluster = await Cluster.create(backend, request);
  for (const options of [{}, { cancelSignal }]) {
    await cluster.run({ args: ["true"], ...options });
    await cluster.saveLogs(options);
  }
  await cluster.destroy();
  console.log("done");
`;

/** Run by Node: creates a cluster, fails in several ways, and prints everything in every form. */
const printingProgram = `
  import { inspect } from "node:util";
  const [index, region, statefulEnvironment] = process.argv.slice(-3);
  const { Cluster, CloudBackend } = await import(index);
  const backend = new CloudBackend({ region, linuxDistribution: "debian-12", environment: JSON.parse(statefulEnvironment) });
  const failure = (promise) => promise.then(() => "no failure", (error) => error);
  const refused = await failure(Cluster.create(backend, { variant: "open", clusterId: "mine" }));
  const cluster = await Cluster.create(backend, { variant: "oss", agents: 0, publicAgents: 0, clusterId: "mine" });
  const [master] = cluster.masters;
  const failures = [
    refused,
    await failure(master.run({ args: [] })),
    await failure(master.run({ args: ["false"] })),
    await failure(cluster.waitForClusterOss({ timeoutMs: 1, skipHttpChecks: "yes" })),
    await failure(Cluster.create(backend, { variant: "oss", clusterId: "mine" })),
  ];
  const all = { showHidden: true, depth: null, getters: true };
  for (const value of [backend, cluster, master, failures]) {
    console.log(value);
    console.dir(value, all);
    console.log(inspect(value, { ...all, customInspect: false }));
    console.log(JSON.stringify(value), JSON.stringify({ ...value }));
  }
  await cluster.destroy();
  console.log(failures.map(({ id }) => id).join(" "));
`;

/** Runs a program in Node with the built library, and returns what it prints. Its last arguments are the library, the region and the environment. */
async function printedWithCloud(
  program: string,
  secrets: Readonly<Record<string, string>> = {},
): Promise<string> {
  await using scratch = await scratchFolder();
  await using cloud = await LocalCloud.start({ driver: "in-process", directory: scratch.path });
  cloud.answers.replace([
    { pattern: "e2e-first-contact", replaceHostKey: true },
    { pattern: "resolv\\.conf", stdout: "10.0.0.2\n" },
    { pattern: "\\bexec false\\b", status: 1 },
    { pattern: "", readsStdin: true },
  ]);
  const library = join(await buildLibrary("0.0.0+test"), "index.js");
  const environment = { ...cloud.environment, XDG_STATE_HOME: scratch.path, ...secrets };
  const words = [
    "--input-type=module",
    "--eval",
    program,
    library,
    cloud.region,
    JSON.stringify(environment),
  ];
  const child = Bun.spawn([node!, ...words], { stdout: "pipe", stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  expect(text).not.toContain(cloud.secretAccessKey);
  return text;
}

test.skipIf(node === undefined)(
  "under Node, nothing that a program prints shows the environment",
  async () => {
    const text = await printedWithCloud(printingProgram, { DEPLOY_TOKEN: "hush-0123456789" });
    expect(text).toEndWith(
      "\nbad-usage bad-usage remote-command-failed bad-usage cluster-exists\n",
    );
    expect(text).toContain("master_0");
    expect(text).not.toContain("hush-0123456789");
  },
);

test.skipIf(node === undefined)(
  "under Node, a cluster with many nodes causes no warnings about listeners",
  async () => {
    expect(await printedWithCloud(crowdedProgram)).toBe("done\n");
  },
);
