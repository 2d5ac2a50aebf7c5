/** `web` in a bundle, as in an executable: only there is the program that starts a browser the system's own. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

const authority = "The browser must trust the cluster's certificate authority: https://192.0.2.1/";

test.skipIf(process.platform !== "linux").each([
  ["oss", true, "http://192.0.2.1/", []],
  ["oss", false, "http://192.0.2.1/", [expect.stringContaining("open the URL yourself")]],
  ["enterprise", true, "https://192.0.2.1/", [expect.stringContaining(authority)]],
])(
  "the URL of a cluster %s is printed, and opened if there is a browser: %p",
  async (variant, isThere, url, told) => {
    await using folder = await scratchFolder();
    const opened = join(folder.path, "opened");
    if (isThere)
      await writeFile(join(folder.path, "xdg-open"), `#!/bin/sh\necho "$1" >${opened}\n`, {
        mode: 0o755,
      });
    const program = join(folder.path, "program");
    await Bun.build({
      entrypoints: [join(import.meta.dir, "web-program.ts")],
      outdir: program,
      target: "bun",
      splitting: true,
    });
    const argv = [process.execPath, join(program, "web-program.js"), variant, folder.path];
    const child = Bun.spawn(argv, {
      env: { PATH: folder.path, HOME: folder.path },
      stderr: "inherit",
    });
    expect(await child.stdout.json()).toMatchObject({
      status: 0,
      stdout: url,
      told,
    });
    if (isThere)
      await until("the browser", async () => (await readFile(opened, "utf8")) === `${url}\n`);
  },
);
