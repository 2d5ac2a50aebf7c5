/** end-group.sh by itself, with real processes. */
import { afterAll, expect, test } from "bun:test";
import processTree from "../../../../src/ssh/session/process-tree.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { endGroupCommand } from "../../../../src/ssh/session/session-line.ts";
import { until } from "../../../support/until.ts";

const started: number[] = [];

afterAll(() => {
  for (const processId of started) {
    try {
      process.kill(processId, "SIGKILL");
    } catch {
      // It has ended, as it should.
    }
  }
});

/** Starts a group of its own. Returns its id, and those of the processes whose ids it prints. */
async function startGroup(script: string, count: number) {
  const child = Bun.spawn(["setsid", "sh", "-c", script], { stdin: "ignore", stderr: "ignore" });
  const lines = child.stdout.getReader();
  let text = "";
  while (text.split("\n").length <= count)
    text += new TextDecoder().decode((await lines.read()).value);
  const ids = text.trim().split("\n").map(Number);
  started.push(child.pid, ...ids);
  return { group: child.pid, ids };
}

const isRunning = async (processId: number): Promise<boolean> => {
  const stat = await Bun.file(`/proc/${processId}/stat`)
    .text()
    .catch(() => "");
  return stat !== "" && !/\) [ZX] /.test(stat);
};

test.each([
  ["in a session of its own", "setsid sh -c 'echo $$; exec sleep 1000' & wait"],
  [
    "below one that ignores TERM",
    'sh -c \'trap "" TERM; setsid sh -c "echo \\$\\$; exec sleep 1000" & wait\' & wait',
  ],
  [
    "with a name that looks like the fields behind it",
    'cp /bin/sleep "$0/x\n1 (a) S 1 1"; setsid sh -c \'echo $$; exec "$0" 1000\' "$0/x\n1 (a) S 1 1" & wait',
  ],
  [
    "with a name that is no text",
    'name=$(printf "x\\377) S 1 1"); cp /bin/sleep "$0/$name"; setsid sh -c \'echo $$; exec "$0" 1000\' "$0/$name" & wait',
  ],
])("what a group has started ends with it, %s", async (_what, script) => {
  const folder = (await Bun.$`mktemp -d`.text()).trim();
  const { group, ids } = await startGroup(script.replaceAll("$0/", `${folder}/`), 1);
  const other = await startGroup("echo $$; exec sleep 1000", 1);
  expect(await isRunning(ids[0]!)).toBe(true);
  const ended = Bun.spawn([...endGroupCommand(group)], { stdout: "pipe", stderr: "pipe" });
  expect(await new Response(ended.stdout).text()).toBe("");
  await until(
    "all have ended",
    async () => !(await isRunning(ids[0]!)) && !(await isRunning(group)),
  );
  expect(await isRunning(other.ids[0]!)).toBe(true);
  await Bun.$`rm -r ${folder}`;
});

test("where init and the kernel's threads have no group, as on some virtual machines, they are in no tree", async () => {
  const script = `${shellText(processTree)}\nprocess_tree '' 0; process_tree '' ''; process_tree '' 1`;
  const child = Bun.spawn(["sh", "-c", script], { stderr: "inherit" });
  expect(await new Response(child.stdout).text()).toBe("");
});
