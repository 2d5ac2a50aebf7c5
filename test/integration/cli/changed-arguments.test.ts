/** Arguments, variables and secrets with bytes that aren't UTF-8 are refused, because the runtime has changed them. */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runShell } from "./start-example.ts";

const program = join(import.meta.dir, "../../../src/bin/cluster-container.ts");
const vmProgram = join(import.meta.dir, "../../../src/bin/cluster-vm.ts");

/** printf makes the bytes of the last argument. */
async function run(format: string, words: string) {
  const child = Bun.spawn(
    ["sh", "-c", `exec "$0" "$1" ${words} "$(printf "$2")"`, process.execPath, program, format],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  return { stderr: await new Response(child.stderr).text(), status: await child.exited };
}

test.each(["run -c none -- echo", "list -c", "destroy"])(
  "%s: bytes that aren't UTF-8 are an error of usage",
  async (words) => {
    const { status, stderr } = await run("a\\377b", words);
    expect(status).toBe(2);
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("some bytes are not UTF-8");
  },
);

test.skipIf(process.platform !== "linux")(
  "the character that stands for such bytes may be typed",
  async () => {
    const { stderr } = await run("a\\357\\277\\275b", "list --no-such-option");
    expect(stderr).not.toContain("UTF-8");
    expect(stderr).toContain("no-such-option");
  },
);

test.each([
  ["a variable of the environment", 'XDG_STATE_HOME="$(printf "/tmp/a\\377b")" "$0" "$1" list', 5],
  ["a file of variables", 'printf "A=a\\377b" >own.env; "$0" "$1" run --env-file own.env true', 2],
])("%s: bytes that aren't UTF-8 are an error", async (_, line, status) => {
  await using folder = await scratchFolder();
  const child = Bun.spawn(["sh", "-c", line, process.execPath, vmProgram], {
    cwd: folder.path,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stderr = (await new Response(child.stderr).text()).replaceAll(/\s+/g, " ");
  expect([await child.exited, stderr]).toEqual([status, expect.stringContaining("are not UTF-8")]);
});

test("a secret on stdin: bytes that aren't UTF-8 are an error", async () => {
  const { exitCode, stderr } = await runShell("printf 'a\\377b\\n' | $EXAMPLE secret");
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining("are not UTF-8")]);
});
