// A runner of GitHub runs this with its own Node, before the job's following steps and again after the last one: runs the
// script `create`, and then `remove` if a cluster was begun. The runner signals only this process, so it signals everything
// that it has begun.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const { STATE_began: began, STATE_id: id, GITHUB_STATE: state } = process.env;
if (began === undefined) {
  appendFileSync(state, "began=yes\n");
  run("create");
} else if (id !== undefined) {
  run("remove");
}

function run(script) {
  const child = spawn("sh", [join(import.meta.dirname, script)], {
    // A process group of its own.
    detached: true,
    stdio: ["ignore", "inherit", "inherit"],
    // A shell can't read a variable with a hyphen.
    env: { ...process.env, INSTALL_SHA256: process.env["INPUT_INSTALL-SHA256"] },
  });
  for (const signal of ["SIGINT", "SIGTERM"])
    process.on(signal, () => process.kill(-child.pid, signal));
  child.on("close", (status) => {
    process.exitCode = status ?? 1;
  });
}
