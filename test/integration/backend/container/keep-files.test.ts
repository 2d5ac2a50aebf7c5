/** What a node keeps for a snapshot of itself, with this computer's own tools. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import keepFiles from "../../../../src/backend/container/snapshots/keep-files.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { runShell } from "../../../support/prepare-machine.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const environment = { PATH: process.env["PATH"]! };

/** Runs the script in a node with this root and this volume. */
async function keep(root: string, volume: string, state: string) {
  const values = { STATE: state, DETAILS: "", MOST: "3840" };
  const script = shellText(keepFiles, values).replace("find / ", `find '${root}' `);
  return runShell(["sh", "-es", volume], script, environment);
}

/** In `fits`, the longest path still fits; in `long`, it doesn't, and one folder's name has a line break. */
const setUp = `
fill() {
  mkdir "$1" && cd -P "$1"
  for _ in $(seq "$2"); do mkdir "$name" && cd -P "$name"; done
  mkdir 'a
line'
}
name=$(printf 'd%.0s' $(seq 200))
(fill fits 18)
(fill long 22)
`;

test("a path that an engine would lose is printed, on the node and in its volumes, and nothing is kept", async () => {
  await using scratch = await scratchFolder();
  const [fits = "", long = "", state = ""] = ["fits", "long", "state"].map((name) =>
    join(scratch.path, name),
  );
  const begun = await runShell(["sh", "-e"], `cd '${scratch.path}'\n${setUp}`, environment);
  expect(begun).toMatchObject({ status: 0, stderr: "" });
  for (const [root, volume] of [
    [long, fits],
    [fits, long],
  ] as const) {
    const { status, stdout, stderr } = await keep(root, volume, state);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toStartWith(`long ${long}/ddd`);
    expect(stdout.split("\n")).toHaveLength(2);
    expect(await Bun.file(join(state, "saved/details.py")).exists()).toBe(false);
  }
  expect((await keep(fits, fits, state)).stdout).not.toContain("long");
  expect(await Bun.file(join(state, "saved/details.py")).exists()).toBe(true);
});
