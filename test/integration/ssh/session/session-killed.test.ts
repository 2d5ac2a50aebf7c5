/** What becomes of the terminal and of the programs behind a session if ssh or this program is killed. A script takes the place of ssh. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** As ssh does, it makes the terminal raw, and leaves it as it was where a signal lets it. */
const ssh = `#!/bin/bash
if [ -t 0 ]; then
  saved=$(stty -g)
  trap 'stty "$saved"; exit 255' TERM
  stty raw -echo
fi
echo $$ >ssh.pid
while :; do sleep 0.05; done
`;

/** Runs a bash script on a terminal, in which `$RUN` is a session. Returns what it wrote to the file \`report\`. */
async function onTerminal(script: string): Promise<readonly string[]> {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "ssh"), ssh, { mode: 0o755 });
  const program = join(import.meta.dir, "session-program.ts");
  const child = Bun.spawn(["bash", "-c", script], {
    cwd: folder.path,
    env: {
      PATH: `${folder.path}:/usr/bin:/bin`,
      HOME: folder.path,
      TERM: "xterm",
      RUN: `${process.execPath} ${program} ${join(folder.path, "config")} true`,
    },
    terminal: { cols: 80, rows: 24, data: () => {} },
  });
  expect(await child.exited).toBe(0);
  return (await readFile(join(folder.path, "report"), "utf8")).trim().split("\n");
}

const begin = (mode: string): string => `before=$(stty -g); $RUN ${mode} <&0 & pid=$!
  until [ -s ssh.pid ]; do sleep 0.05; done; ssh=$(cat ssh.pid)
  children=$(cat /proc/$pid/task/$pid/children)`;
const compare = `[ "$(stty -g)" = "$before" ] && echo restored >>report || stty -a >>report`;
const gone = `for each in $children; do while [ -e /proc/$each ]; do sleep 0.05; done; done; echo gone >>report`;

test.skipIf(process.platform !== "linux").each([
  ["ssh is killed", "kill -KILL $ssh; wait $pid"],
  ["ssh is told to end", "kill -TERM $ssh; wait $pid"],
  ["this program is interrupted", "kill -INT $pid; wait $pid"],
  ["this program is killed", "kill -KILL $pid; wait $pid"],
])("the terminal is as before, and nothing runs on, if %s", async (_, end) => {
  expect(await onTerminal(`${begin("terminal")}; ${end}; ${gone}; ${compare}; exit 0`)).toEqual([
    "gone",
    "restored",
  ]);
});

test.skipIf(process.platform !== "linux")(
  "nothing reads what is typed on after this program is killed",
  async () => {
    // ssh itself has no terminal then: a cat reads it.
    expect(
      await onTerminal(`${begin("")}; kill -KILL $pid; wait $pid; ${gone}; ${compare}; exit 0`),
    ).toEqual(["gone", "restored"]);
  },
);
