/** Faults of processes that one fault has paused already. */
import { expect, test } from "bun:test";
import processesFile from "../../../../src/platform/faults/processes.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each(["stop", "kill", "dead"])(
  "processes that are paused already get no other fault: %s",
  async (signal) => {
    await using scratch = await scratchFolder();
    const values = { ID: "b0000000", FOLDER: scratch.path, UNIT: "", PROGRAM: "app" };
    const script = `
${shellText(processesFile, { ...values, SIGNAL: signal })}
fail() { echo "$*"; exit 1; }
services() { :; }
pids() { echo "$paused $running"; }
await_other() { :; }
sleep 1000 &
running=$!
sleep 1000 &
paused=$!
kill -s STOP "$paused"
until grep -q "^State:.T" "/proc/$paused/status"; do sleep 0.01; done
signal() { [ "$1" != CONT ] || echo continued; }
(begin)
heal
(kill -s 0 "$running" "$paused") && echo both live
kill -s KILL "$running" "$paused"
ls ${scratch.path}`;
    const child = Bun.spawn(["sh", "-c", script], { stderr: "inherit" });
    expect(await new Response(child.stdout).text()).toBe(
      "app is paused already, by another fault or by hand\nboth live\n",
    );
  },
);
