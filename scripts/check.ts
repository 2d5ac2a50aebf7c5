/**
 * Runs all static checks of the sources: format, lint, types, unused code, shell scripts, Python
 * and the rules of the architecture. Exit code 1 if anything is wrong.
 * Usage: bun run check
 */
import { join } from "node:path";
import { checkoutFiles } from "./checkout-files.ts";

const root = join(import.meta.dir, "..");

interface Check {
  readonly name: string;
  readonly argv: readonly string[];
}

interface Result {
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: number;
  readonly output: string;
}

/** Runs a package's program with Bun, because machines with Bun need no Node. */
function tool(name: string, ...args: readonly string[]): readonly string[] {
  return [process.execPath, "--bun", join(root, "node_modules", ".bin", name), ...args];
}

async function run({ name, argv }: Check): Promise<Result> {
  const started = performance.now();
  const child = Bun.spawn([...argv], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, CI: "1", NO_COLOR: "1" },
  });
  const output = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const passed = (await child.exited) === 0;
  return {
    name,
    passed,
    seconds: (performance.now() - started) / 1e3,
    output: output.join("").trim(),
  };
}

/** Lists the files of the checkout whose name or first line names sh or bash. */
async function shellScripts(): Promise<readonly string[]> {
  const files = await checkoutFiles(root);
  const isScript = await Promise.all(
    files.map(
      async (file) =>
        file.endsWith(".bash") ||
        /^#!(\/usr)?\/bin\/(env )?(ba)?sh\b/.test(
          await Bun.file(join(root, file)).slice(0, 40).text(),
        ),
    ),
  );
  return files.filter((_, index) => isScript[index] === true);
}

function report({ name, passed, seconds, output }: Result): void {
  console.log(
    `${passed ? "ok  " : "FAIL"}  ${name.padEnd(12)} ${seconds.toFixed(1).padStart(5)} s`,
  );
  if (!passed) console.log(output.replace(/^/gm, "      "));
}

const rules = "test/unit/architecture-rules.test.ts";

async function main(): Promise<void> {
  const scripts = await shellScripts();
  const checks: readonly Check[] = [
    { name: "format", argv: tool("oxfmt", "--list-different") },
    { name: "lint", argv: tool("oxlint", "--format=unix") },
    { name: "types", argv: tool("tsc", "--project", root) },
    { name: "unused code", argv: tool("knip", "--no-progress") },
    { name: "shell", argv: ["shellcheck", "--external-sources", ...scripts] },
    { name: "python", argv: [process.execPath, "scripts/check-python.ts"] },
    { name: "expressions", argv: [process.execPath, "scripts/slow-expressions.ts"] },
    { name: "schema", argv: [process.execPath, "scripts/json-schema.ts", "--check"] },
    { name: "notices", argv: [process.execPath, "scripts/notices.ts", "--check"] },
    {
      name: "rules",
      // Beside the other checks, on a busy computer, five seconds are not enough.
      argv: [process.execPath, "test", "--timeout=120000", "--only-failures", rules],
    },
  ];
  const results = await Promise.all(
    checks.map(async (check) => {
      const result = await run(check);
      report(result);
      return result;
    }),
  );
  const failed = results.filter(({ passed }) => !passed).length;
  console.log(`check: ${results.length - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}

await main();
