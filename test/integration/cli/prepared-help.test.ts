/** A program whose build has prepared its help. */

import { join } from "node:path";
import { expect, test } from "bun:test";
import { withPreparedHelp } from "../../../scripts/build-plugins.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { example } from "./example-program.ts";

test("prepared help is printed at once where it fits, and only there", async () => {
  await using folder = await scratchFolder();
  await Bun.build({
    entrypoints: [join(import.meta.dir, "example-program.ts")],
    outdir: folder.path,
    target: "bun",
    splitting: true,
    // Another name shows which help is prepared.
    plugins: [withPreparedHelp({ ...example, name: "prepared" })],
  });
  const print = async (
    argv: readonly string[],
    own: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    const child = Bun.spawn([process.execPath, join(folder.path, "example-program.js"), ...argv], {
      env: { PATH: process.env["PATH"], ...own },
      stderr: "pipe",
    });
    return (await child.stdout.text()) + (await child.stderr.text());
  };
  expect(await print([])).toStartWith("Usage: prepared [OPTIONS] COMMAND");
  expect(await print(["-h"])).toEndWith(
    'Run "prepared COMMAND --help" for more about a command.\n',
  );
  expect(await print(["greet", "-h"])).toStartWith("Usage: prepared greet");
  expect(await print(["--help"], { COLUMNS: "60" })).toStartWith(
    "Usage: example [OPTIONS] COMMAND",
  );
  expect(await print(["toString", "--help"])).toStartWith('Error: "toString": no such command');
  expect(await print(["--version"])).toBe("0.0.0+source\n");
});
