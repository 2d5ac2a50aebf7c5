/** The current folder may be somebody else's checkout: nothing in it may be run or read. */
import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { executablePath, repository, run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

async function hostileFolder() {
  const folder = await temporaryFolder();
  await Promise.all([
    writeFile(join(folder.path, "bunfig.toml"), 'preload = ["./evil.ts"]\n'),
    writeFile(
      join(folder.path, "evil.ts"),
      `require("fs").writeFileSync(${JSON.stringify(join(folder.path, "ran"))}, "");`,
    ),
    writeFile(
      join(folder.path, ".env"),
      "CLOUD_ACCESS_KEY_ID=theirs\nCLOUD_SECRET_ACCESS_KEY=theirs\n",
    ),
    writeFile(
      join(folder.path, "tsconfig.json"),
      '{"compilerOptions": {"paths": {"*": ["./evil.ts"]}}}',
    ),
    writeFile(
      join(folder.path, "package.json"),
      '{"imports": {"#*": "./evil.ts"}, "browser": {"yaml": "./evil.ts"}}',
    ),
    ...["ssh2", "yaml", "arg", "@aws-sdk/client-ec2", "cpu-features"].map(async (name) => {
      await mkdir(join(folder.path, "node_modules", name), { recursive: true });
      await writeFile(
        join(folder.path, "node_modules", name, "package.json"),
        '{"main": "../../evil.ts"}',
      );
    }),
  ]);
  return folder;
}

const programs = (await readdir(join(repository, "dist"))).filter((name) =>
  /^cluster-[a-z]+$/.test(name),
);
const commands = programs.flatMap((program) =>
  ["--version", "list", "completion bash"].map((line) => [program, line]),
);

// Shows R131.
test.each(commands)("%s %s opens nothing that lies in the folder", async (program, line) => {
  const words = line.split(" ");
  await using folder = await hostileFolder();
  const trace = join(folder.path, "trace");
  const environment = {
    XDG_STATE_HOME: folder.path,
    HOME: folder.path,
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const child = Bun.spawn(
    [
      "strace",
      "-f",
      "-e",
      "trace=open,openat,openat2,stat,readlink",
      "-o",
      trace,
      executablePath(program),
      ...words,
    ],
    {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", ...environment },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  await child.exited;
  const opened = await Bun.file(trace).text();
  expect(opened).toContain("openat");
  expect(opened).not.toMatch(
    /bunfig\.toml|"[^"]*\.env"|evil\.ts|package\.json|tsconfig\.json|node_modules/,
  );
  expect(await Bun.file(join(folder.path, "ran")).exists()).toBe(false);
  const plain = await run(program, words, { cwd: folder.path, environment });
  expect(plain.status).toBe(program === "cluster-cloud" && line === "list" ? 5 : 0);
});
