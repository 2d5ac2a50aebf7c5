/** The fixtures for pytest, with a program that only says what it is asked for. */
import { expect, test } from "bun:test";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const conftest = join(import.meta.dir, "../../../src/commands/tools/conftest.py");

/** Stands in for pytest and testinfra, and uses the fixture as pytest does. */
const useFixture = `
import runpy, sys, types
from pathlib import Path
pytest = types.ModuleType("pytest")
pytest.fixture = lambda given=None, **_: given or (lambda function: function)
pytest.hookimpl = lambda **_: lambda function: function
sys.modules.update(pytest=pytest, testinfra=types.ModuleType("testinfra"))
folder = types.SimpleNamespace(join=lambda name: Path(name))
fixture = runpy.run_path(sys.argv[1])["installed"](types.SimpleNamespace(mktemp=lambda _: folder))
next(fixture)
next(fixture, None)
`;

test.each([
  ["nothing", ["create", "snapshot", "destroy"]],
  ["create", ["create", "destroy"]],
  ["snapshot", ["create", "snapshot", "destroy"]],
])("the cluster is destroyed if %s fails", async (failing, expected) => {
  await using scratch = await scratchFolder();
  const asked = join(scratch.path, "asked");
  const program = join(scratch.path, "cluster-container");
  await Bun.write(program, `#!/bin/sh\necho "$*" >>'${asked}'\n[ "$1" != ${failing} ]\n`);
  await chmod(program, 0o755);
  const env = { PATH: `${scratch.path}:${process.env["PATH"]}`, PYTHONDONTWRITEBYTECODE: "1" };
  const python = Bun.spawn(["python3", "-c", useFixture, conftest], {
    env,
    cwd: scratch.path,
    stderr: "pipe",
  });
  const [status, stderr] = await Promise.all([python.exited, python.stderr.text()]);
  expect(status === 0, stderr).toBe(failing === "nothing");
  const lines = (await readFile(asked, "utf8")).trimEnd().split("\n");
  expect(lines.map((line) => line.split(" ")[0])).toEqual(expected);
  // A creation that failed has usually removed what it made.
  expect(lines.at(-1)).toBe("destroy --if-exists --yes");
});
