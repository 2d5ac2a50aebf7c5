/** The repository keeps the rules of its architecture, and each rule detects a violation. */

import { expect, test } from "bun:test";
import { imports, repository, violations } from "./architecture-rules.ts";

test("the repository keeps every rule", async () => {
  const files = await repository();
  expect(files.length).toBeGreaterThan(20);
  expect(violations(files)).toEqual([]);
});

test.each([
  ["src/ssh/utils.ts: a name without meaning", ""],
  ["src/ssh/key-helpers.ts: a name without meaning", ""],
  ["tools/build.ts: not for the top level", ""],
  ["src/ssh/tooLong.ts: not in kebab-case", ""],
  ["src/ssh/pool.ts: too many lines", "a;\n".repeat(401)],
  ["src/ssh/pool.ts: state at module level", "let count = 0;"],
  ["src/ssh/pool.ts: a default export", "export default 1;"],
  ["src/bin/cluster-vm.ts: process.exit loses output: set process.exitCode", "process.exit(1);"],
  [
    "src/ssh/pool.ts: process or console outside the files that may use them",
    "const a = process.env;",
  ],
  ["src/cli/help.ts: process or console outside the files that may use them", "console.log(1);"],
  ["src/ssh/pool.ts: an AbortSignal that may be left out", "function a(signal?: AbortSignal) {}"],
  [
    "src/ssh/pool.ts: reads or parses a text of any length: use readText, readOwnText, readBody, parseJson",
    "const a = JSON.parse(b);",
  ],
  [
    "src/ssh/pool.ts: reads an environment variable without `variable`",
    'const a = environment["HOME"];',
  ],
  [
    "src/ssh/pool.ts: reads an environment variable without `variable`",
    'const { HOME = "" } = runtime.environment;',
  ],
  ["src/ssh/pool.ts: writes past the terminal", "writeSync(2, said);"],
  [
    "src/ssh/pool.ts: quotes a program's output without outsideLine",
    "fail(`It failed: ${end.stderr.trim()}.`);",
  ],
  [
    "src/ssh/pool.ts: quotes a program's output without outsideLine",
    "fail(`${first(result.stdout)}`);",
  ],
  ["test/unit/a.test.ts: a module mock", "mock.module(name, () => ({}));"],
  [
    "test/e2e/a.test.ts: a web server for everyone on this computer: use serveOnLoopback",
    "Bun.serve({ fetch });",
  ],
  [
    "test/support/a.ts: an SSH server for everyone on this computer: use answerLogin",
    'client.on("authentication", (context) => context.accept());',
  ],
  [
    "src/ssh/pool.ts: an error's message in a text: quote it with messageOf, which keeps the marks of outside text",
    "const a = `Cannot run it: ${error.message}.`;",
  ],
  [
    "src/ssh/pool.ts: starts a program without choosing its environment",
    'spawn("ssh", [host], { stdio: "ignore" });',
  ],
  ["src/ssh/ways.ts: a barrel file", 'export { a } from "./pool.ts";'],
  ["src/ssh/ways.ts: a barrel file", 'export * from "./pool.ts";'],
  ["src/ssh/pool.ts: not named after what it exports", "export function openLink(): void {}"],
  ["src/ssh/pool.ts: imports node:process", 'import { env } from "node:process";'],
  ["src/ssh/a.ts: shell text belongs into a .sh file", "const a = `\nif true; then\n  id\nfi\n`;"],
  ["src/ssh/a.sh: no header that says who runs it", "#!/bin/sh\n# Prints a word.\n\necho a\n"],
  [
    "src/ssh/a.sh: a here-document, which needs space on the disk: use printf",
    "#!/bin/sh\n# Prints a word. Runs as root.\n\ncat <<END\na\nEND\n",
  ],
  ["src/ssh/a.py: no header that says who runs it", "# Runs as root.\nprint(1)\n"],
  ["src/attic/a.ts: no such layer: attic", ""],
  [
    "src/commands/run.ts: commands must not import src/backend/cloud/api.ts",
    'import { a } from "../backend/cloud/api.ts";',
  ],
  [
    "src/commands/run.ts: commands must not import src/backend/shared/first-boot.ts",
    'import { a } from "../backend/shared/first-boot.ts";',
  ],
  [
    "src/cluster/a.ts: cluster must not import src/backend/shared/first-boot.ts",
    'import { a } from "../backend/shared/first-boot.ts";',
  ],
  [
    "src/platform/a.ts: platform must not import src/cluster/cluster.ts",
    'import {\n  a,\n} from "../cluster/cluster.ts";',
  ],
  [
    "src/backend/vm/a.ts: backend/vm must not import src/backend/cloud/api.ts",
    'const a = await import("../cloud/api.ts");',
  ],
  [
    "src/platform/a.ts: platform must not import src/backend/contract.ts",
    'import type { A } from "../backend/contract.ts";',
  ],
  [
    "src/backend/shared/a.ts: backend/shared must not import src/backend/cloud/api.ts",
    'import { a } from "../cloud/api.ts";',
  ],
  [
    "src/bin/cluster-vm.ts: bin must not import src/backend/cloud/api.ts",
    'import { a } from "../backend/cloud/api.ts";',
  ],
  [
    "src/cli/a.ts: cli must not import src/commands/run.ts",
    'import { a } from "../commands/run.ts";',
  ],
  [
    "src/model/a.ts: model must not import src/system/runtime.ts",
    'import type { Clock } from "../system/runtime.ts";',
  ],
  [
    "src/cli/a.ts: cli must not import src/model/cluster-record.ts",
    'import type { A } from "../model/cluster-record.ts";',
  ],
  ["src/errors.ts: errors.ts must not import src/version.ts", 'import { a } from "./version.ts";'],
  ["src/system/a.ts: imports scripts/build.ts", 'import { a } from "../../scripts/build.ts";'],
  [
    "src/commands/a.ts: commands must not import the package ssh2",
    'import type { Client } from "ssh2";',
  ],
  [
    "src/backend/vm/a.ts: backend/vm must not import the package @aws-sdk/client-ec2",
    'await import("@aws-sdk/client-ec2");',
  ],
  ["src/ssh/a.ts: ssh must not import the package lodash", 'import { a } from "lodash";'],
])("a violation is found: %s", (violation, text) => {
  expect(violations([{ path: violation.slice(0, violation.indexOf(":")), text }])).toEqual([
    violation,
  ]);
});

test("the list of layers itself only points downwards", () => {
  const layers = Object.keys(imports);
  for (const [layer, allowed] of Object.entries(imports)) {
    const layerOf = (other: string): string =>
      layers.includes(other) ? other : other.slice(0, other.indexOf("/"));
    const above = allowed.filter(
      (other) =>
        other !== "backend/<own>" && layers.indexOf(layerOf(other)) <= layers.indexOf(layer),
    );
    expect({ layer, above }).toEqual({ layer, above: [] });
  }
});

test("a folder with more than 20 files is found; files in its subfolders don't count", () => {
  const files = Array.from({ length: 21 }, (_, index) => ({
    path: `src/backend/cloud/file-${index}.ts`,
    text: "",
  }));
  const others = files
    .map(({ path }) => ({ path: path.replace("cloud/", "vm/machines/"), text: "" }))
    .slice(1);
  expect(violations([...files, ...others])).toEqual(["src/backend/cloud: 21 files in one folder"]);
});

test("an import cycle is found, also of types", () => {
  const files = [
    { path: "src/ssh/a.ts", text: 'import type { B } from "./b.ts";' },
    { path: "src/ssh/b.ts", text: 'import { c } from "./c.ts";' },
    { path: "src/ssh/c.ts", text: 'const { a } = await import("./a.ts");' },
    { path: "src/ssh/d.ts", text: 'import { a } from "./a.ts";' },
  ];
  expect(violations(files)).toEqual(["src/ssh/a.ts: import cycle with src/ssh/b.ts, src/ssh/c.ts"]);
});

test("an end-to-end test that imports src through another file is found", () => {
  const files = [
    { path: "test/e2e/create.test.ts", text: 'import { a } from "../support/ways.ts";' },
    { path: "test/support/ways.ts", text: 'import { b } from "../../src/ssh/keys.ts";' },
  ];
  expect(violations(files)).toEqual([
    "test/support/ways.ts: the end-to-end tests must not import src/ssh/keys.ts",
  ]);
});

test.each([
  ["src/bin/cluster-vm.ts", 'import { a } from "../backend/vm/backend.ts";\nprocess.exitCode = 1;'],
  ["src/cluster/a.ts", 'import type { A } from "../backend/contract.ts";'],
  ["src/commands/a.ts", 'import type { A } from "../backend/contract.ts";'],
  [
    "src/backend/cloud/a.ts",
    'import { a } from "../shared/first-boot.ts";\nimport type { A } from "../../model/cluster-record.ts";',
  ],
  [
    "src/ssh/a.ts",
    '// process.exit(1) is banned\nimport { a } from "../errors.ts";\nconst b = "console.log(1)";',
  ],
  ["src/cli/a.ts", "export function a(): void {\n  let b = 0;\n}\n"],
  ["src/index.ts", 'export { Cluster } from "./library/cluster.ts";'],
  ["src/ssh/a.ts", 'export type { A } from "./pool.ts";\nexport const a = 1;'],
])("no violation in %s: %j", (path, text) => {
  expect(violations([{ path, text }])).toEqual([]);
});
