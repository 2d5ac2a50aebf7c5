/** The laws of the house that no linter knows: which room may import which, what things are called, how big they are. */
import { expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";

interface SourceFile {
  /** From the top of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

const topLevel =
  `package.json bunfig.toml src test scripts tsconfig.json README.md bun.lock .gitignore .ci .oxlintrc.json
  .oxfmtrc.json .knip.json CHANGELOG.md CONTRIBUTING.md`.split(/\s+/);

/** Rooms of src and what each may import beside itself; an entry with a file name opens that file only (the seam's types). */
const imports: Readonly<Record<string, readonly string[]>> = {
  bin: ["commands", "backend/<own>", "cli", "doctor", "model"],
  commands: ["cli", "cluster", "platform", "doctor", "system", "model"],
  cluster: ["platform", "ssh", "system", "model"],
  platform: ["ssh", "system", "model"],
  backend: ["ssh", "doctor", "system", "model"],
  "backend/cloud": ["backend", "ssh", "doctor", "system", "model"],
  "backend/container": ["backend", "ssh", "doctor", "system", "model"],
  "backend/vm": ["backend", "ssh", "doctor", "system", "model"],
  ssh: ["system", "model"],
  doctor: ["system", "model"],
  cli: ["system"],
  system: ["model"],
  model: [],
  "index.ts": ["cluster", "backend", "backend/cloud", "backend/container", "backend/vm", "platform", "system", "model"],
  "errors.ts": [],
  "version.ts": [],
};

/** Where each package of the design card may be imported. */
const packageRooms: Readonly<Record<string, readonly string[]>> = {
  ssh2: ["ssh"],
  "@aws-sdk": ["backend/cloud"],
  "@smithy": ["backend/cloud"],
  arg: ["cli"],
  kleur: ["cli"],
  open: ["system"],
  yaml: ["platform", "cli"],
};

const openToAll = ["src/errors.ts", "src/version.ts"];
/** Where a program or, in index.ts, a program that uses the library meets its process. */
const processRooms = /^(src\/bin\/|src\/cli\/(main|terminal)\.ts$|src\/index\.ts$|scripts\/|test\/)/;
const unspeaking = /(^|\/)(utils?|helpers?|managers?|common|misc|base)(\/|\.|$)|-(utils?|helpers?|managers?)(\/|\.|$)/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.ts$/;

/** All that breaks a law, as `path: what`. Sentences in comments and strings break none. */
function breaches(files: readonly SourceFile[]): readonly string[] {
  const sources = files.filter(({ path }) => /^(src|scripts|test)\/.*\.ts$/.test(path));
  return [
    ...files
      .filter(({ path }) => !topLevel.includes(path.split("/")[0]!))
      .map(({ path }) => `${path}: not for the top level`),
    ...files.filter(({ path }) => unspeaking.test(path)).map(({ path }) => `${path}: a name that says nothing`),
    ...sources.flatMap((file) => shapeFaults(file).map((fault) => `${file.path}: ${fault}`)),
    ...sources.flatMap((file) => importFaults(file).map((fault) => `${file.path}: ${fault}`)),
    ...leaksIntoEndToEnd(sources),
  ];
}

function shapeFaults({ path, text }: SourceFile): readonly string[] {
  const code = withoutWords(text);
  const faults: readonly (readonly [boolean, string])[] = [
    [text.trimEnd().split("\n").length > 300, "over 300 lines"],
    [!kebabCase.test(basename(path)), "not in kebab-case"],
    [/^(export\s+)?(let|var)\b/m.test(code), "state at module level"],
    [/^export default\b/m.test(code), "a default export"],
    [/\bprocess\.exit\(/.test(code), "process.exit loses output: set process.exitCode"],
    [!processRooms.test(path) && /(?<![.\w])(process|console)\./.test(code), "process or console outside their rooms"],
    [/\bsignal\?:\s*AbortSignal\b/.test(code), "an AbortSignal that may be left out"],
    [/\bmock\.module\(/.test(code), "a module mock"],
    [path !== "src/index.ts" && isBarrel(path, code), "a barrel file"],
  ];
  return faults.filter(([found]) => found).map(([, fault]) => fault);
}

function isBarrel(path: string, code: string): boolean {
  if (basename(path) === "index.ts" || /^export \*/m.test(code)) return true;
  const exported = code.match(/^export\b[^;{]*(\{[^}]*\}\s*from\b)?/gm) ?? [];
  return exported.length > 0 && exported.every((statement) => /\}\s*from$/.test(statement));
}

function importFaults(file: SourceFile): readonly string[] {
  if (!file.path.startsWith("src/")) return [];
  const room = roomOf(file.path);
  if (imports[room] === undefined) return [`no such room: ${room}`];
  return imported(file).flatMap((target) => {
    if (target.startsWith("node:process")) return ["imports node:process"];
    if (/^(node|bun)(:|$)/.test(target)) return [];
    if (target.startsWith("src/")) return mayImport(file.path, target) ? [] : [`${room} must not import ${target}`];
    if (target.startsWith(".") || target.startsWith("test/") || target.startsWith("scripts/"))
      return [`imports ${target}`];
    const rooms = packageRooms[target.split("/")[0]!] ?? [];
    return rooms.includes(room) ? [] : [`${room} must not import the package ${target}`];
  });
}

function mayImport(from: string, to: string): boolean {
  const room = roomOf(from);
  if (openToAll.includes(to)) return !openToAll.includes(from);
  const own = basename(from, ".ts").replace(/^cluster-|-driver$/g, "");
  const allowed = imports[room]!.map((entry) => entry.replace("<own>", own));
  return roomOf(to) === room || allowed.includes(roomOf(to)) || allowed.some((entry) => `src/${entry}` === to);
}

/** The folder under src, with the backend's name where there is one; for a file beside the rooms, its own name. */
function roomOf(path: string): string {
  const [, first = "", second = "", third] = path.split("/");
  return first === "backend" && third !== undefined ? `${first}/${second}` : first;
}

/** What a file imports or re-exports, types included: paths from the top of the repository, or package names. */
function imported({ path, text }: SourceFile): readonly string[] {
  const code = withoutComments(text);
  const patterns = [
    /^(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"/gm,
    /^import\s*"([^"]+)"/gm,
    /\bimport\(\s*"([^"]+)"/g,
  ];
  const names = patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1]!));
  return names.map((name) => (name.startsWith(".") ? normalize(join(dirname(path), name)) : name));
}

/** The end-to-end tests know the executables only; neither they nor what they import may reach into src. */
function leaksIntoEndToEnd(sources: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const reached = sources.filter(({ path }) => path.startsWith("test/e2e/"));
  const leaks: string[] = [];
  for (const file of reached) {
    for (const target of imported(file)) {
      const next = byPath.get(target);
      if (target.startsWith("src/")) leaks.push(`${file.path}: the end-to-end tests must not import ${target}`);
      else if (next !== undefined && !reached.includes(next)) reached.push(next);
    }
  }
  return leaks;
}

function withoutComments(text: string): string {
  return text.replace(
    /("(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\/.*|\/\*[\s\S]*?\*\//g,
    (_, literal?: string) => literal ?? "",
  );
}

function withoutWords(text: string): string {
  return withoutComments(text).replace(/"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, '""');
}

/** Every file of the working tree but what git ignores. */
async function repository(): Promise<readonly SourceFile[]> {
  const root = join(import.meta.dir, "..", "..");
  const top = (await readdir(root)).filter((name) => !/^(\.git|node_modules|dist|.*\.bun-build)$/.test(name));
  const glob = new Bun.Glob("**/*");
  const inside = await Promise.all(
    ["src", "scripts", "test"].map(async (folder) =>
      (await Array.fromAsync(glob.scan({ cwd: join(root, folder), dot: true }))).map((path) => `${folder}/${path}`),
    ),
  );
  const texts = inside.flat().map(async (path) => ({
    path,
    text: path.endsWith(".ts") ? await readFile(join(root, path), "utf8") : "",
  }));
  return [...top.map((path) => ({ path, text: "" })), ...(await Promise.all(texts))];
}

test("the repository keeps the laws of the house", async () => {
  const files = await repository();
  expect(files.length).toBeGreaterThan(20);
  expect(breaches(files)).toEqual([]);
});

test.each([
  ["src/ssh/utils.ts: a name that says nothing", ""],
  ["src/ssh/key-helpers.ts: a name that says nothing", ""],
  ["tools/build.ts: not for the top level", ""],
  ["src/ssh/tooLong.ts: not in kebab-case", ""],
  ["src/ssh/pool.ts: over 300 lines", "a;\n".repeat(301)],
  ["src/ssh/pool.ts: state at module level", "let count = 0;"],
  ["src/ssh/pool.ts: a default export", "export default 1;"],
  ["src/bin/cluster-vm.ts: process.exit loses output: set process.exitCode", "process.exit(1);"],
  ["src/ssh/pool.ts: process or console outside their rooms", "const a = process.env;"],
  ["src/cli/help.ts: process or console outside their rooms", "console.log(1);"],
  ["src/ssh/pool.ts: an AbortSignal that may be left out", "function a(signal?: AbortSignal) {}"],
  ["test/unit/a.test.ts: a module mock", "mock.module(name, () => ({}));"],
  ["src/ssh/ways.ts: a barrel file", 'export { a } from "./pool.ts";'],
  ["src/ssh/ways.ts: a barrel file", 'export * from "./pool.ts";'],
  ["src/ssh/pool.ts: imports node:process", 'import { env } from "node:process";'],
  ["src/attic/a.ts: no such room: attic", ""],
  [
    "src/commands/run.ts: commands must not import src/backend/cloud/api.ts",
    'import { a } from "../backend/cloud/api.ts";',
  ],
  [
    "src/commands/run.ts: commands must not import src/backend/cloud-init.ts",
    'import { a } from "../backend/cloud-init.ts";',
  ],
  [
    "src/cluster/a.ts: cluster must not import src/backend/cloud-init.ts",
    'import { a } from "../backend/cloud-init.ts";',
  ],
  [
    "src/platform/a.ts: platform must not import src/cluster/cluster.ts",
    'import {\n  a,\n} from "../cluster/cluster.ts";',
  ],
  [
    "src/backend/vm/a.ts: backend/vm must not import src/backend/cloud/api.ts",
    'const a = await import("../cloud/api.ts");',
  ],
  ["src/backend/a.ts: backend must not import src/backend/cloud/api.ts", 'import { a } from "./cloud/api.ts";'],
  [
    "src/bin/cluster-vm.ts: bin must not import src/backend/cloud/api.ts",
    'import { a } from "../backend/cloud/api.ts";',
  ],
  ["src/cli/a.ts: cli must not import src/commands/run.ts", 'import { a } from "../commands/run.ts";'],
  ["src/model/a.ts: model must not import src/system/clock.ts", 'import type { Clock } from "../system/clock.ts";'],
  [
    "src/cli/a.ts: cli must not import src/model/cluster-record.ts",
    'import type { A } from "../model/cluster-record.ts";',
  ],
  ["src/errors.ts: errors.ts must not import src/version.ts", 'import { a } from "./version.ts";'],
  ["src/system/a.ts: imports scripts/build.ts", 'import { a } from "../../scripts/build.ts";'],
  ["src/commands/a.ts: commands must not import the package ssh2", 'import type { Client } from "ssh2";'],
  [
    "src/backend/vm/a.ts: backend/vm must not import the package @aws-sdk/client-ec2",
    'await import("@aws-sdk/client-ec2");',
  ],
  ["src/ssh/a.ts: ssh must not import the package lodash", 'import { a } from "lodash";'],
])("a planted fault is found: %s", (breach, text) => {
  expect(breaches([{ path: breach.slice(0, breach.indexOf(":")), text }])).toEqual([breach]);
});

test("what an end-to-end test reaches by way of another file is found", () => {
  const files = [
    { path: "test/e2e/create.test.ts", text: 'import { a } from "../support/ways.ts";' },
    { path: "test/support/ways.ts", text: 'import { b } from "../../src/ssh/keys.ts";' },
  ];
  expect(breaches(files)).toEqual(["test/support/ways.ts: the end-to-end tests must not import src/ssh/keys.ts"]);
});

test.each([
  ["src/bin/cluster-vm.ts", 'import { a } from "../backend/vm/backend.ts";\nprocess.exitCode = 1;'],
  ["src/cluster/a.ts", 'import type { A } from "../model/backend.ts";'],
  ["src/commands/a.ts", 'import type { A } from "../model/backend.ts";'],
  [
    "src/backend/cloud/a.ts",
    'import { a } from "../cloud-init.ts";\nimport type { A } from "../../model/cluster-record.ts";',
  ],
  ["src/ssh/a.ts", '// process.exit(1) is banned\nimport { a } from "../errors.ts";\nconst b = "console.log(1)";'],
  ["src/cli/a.ts", "export function a(): void {\n  let b = 0;\n}\n"],
  ["src/index.ts", 'export { Cluster } from "./cluster/cluster.ts";'],
  ["src/ssh/a.ts", 'export type { A } from "./pool.ts";\nexport const b = 1;'],
])("what %s may do is no breach", (path, text) => {
  expect(breaches([{ path, text }])).toEqual([]);
});
