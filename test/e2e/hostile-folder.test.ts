/** Our users stand in other people's checkouts: what lies there must not run, and not be read. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { executablePath, run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

async function hostileFolder() {
  const folder = await temporaryFolder();
  await Promise.all([
    writeFile(join(folder.path, "bunfig.toml"), 'preload = ["./evil.ts"]\n'),
    writeFile(
      join(folder.path, "evil.ts"),
      `require("fs").writeFileSync(${JSON.stringify(join(folder.path, "ran"))}, "");`,
    ),
    writeFile(join(folder.path, ".env"), "CLOUD_ACCESS_KEY_ID=theirs\nCLOUD_SECRET_ACCESS_KEY=theirs\n"),
  ]);
  return folder;
}

test.each([[["--version"]], [["list"]]])("cluster-cloud %p opens neither bunfig.toml nor .env", async (words) => {
  await using folder = await hostileFolder();
  const trace = join(folder.path, "trace");
  const environment = { XDG_STATE_HOME: folder.path, HOME: folder.path, AWS_EC2_METADATA_DISABLED: "true" };
  const child = Bun.spawn(
    [
      "strace",
      "-f",
      "-e",
      "trace=open,openat,openat2,stat,readlink",
      "-o",
      trace,
      executablePath("cluster-cloud"),
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
  expect(opened).not.toMatch(/bunfig\.toml|"[^"]*\.env"|evil\.ts/);
  expect(await Bun.file(join(folder.path, "ran")).exists()).toBe(false);
  const plain = await run("cluster-cloud", words, { cwd: folder.path, environment });
  expect(plain.status).toBe(words[0] === "list" ? 5 : 0);
});
