/** This process's own outputs, with readers of every kind. */
import { describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const program = join(import.meta.dir, "output-program.ts");

/** Runs a line of bash in which `$PROGRAM` writes. `stalled` sees the report before a reader may begin, which waits for the file `go`. */
async function write(line: string, stalled?: (report: () => Promise<string>) => Promise<void>) {
  await using folder = await scratchFolder();
  const report = async (): Promise<string> =>
    readFile(join(folder.path, "report"), "utf8").catch(() => "");
  const env = {
    ...process.env,
    PROGRAM: `${process.execPath} ${program}`,
    REPORT: join(folder.path, "report"),
  };
  const child = Bun.spawn(["bash", "-c", line], {
    cwd: folder.path,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  await stalled?.(report);
  await writeFile(join(folder.path, "go"), "");
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { stdout, stderr, report: await report() };
}

const untilGo = "until [ -e go ]; do sleep 0.05; done";
const whole = {
  stdout: "o".repeat(2 ** 20),
  stderr: "e".repeat(2 ** 20),
  report: "files were read\nwritten\nwritten\n",
};

describe("an output", () => {
  test.each([
    ["pipes", `$PROGRAM 2> >(${untilGo}; cat >&2) | (${untilGo}; cat)`],
    ["sockets", "$PROGRAM"],
  ])("that nobody reads stops no other work, and arrives whole in the end: %s", async (_, line) => {
    const result = await write(line, (report) =>
      until("other work", async () => (await report()).includes("files were read")),
    );
    expect(result).toEqual(whole);
  });

  test("goes to the end of a file that others write to", async () => {
    const { stdout } = await write(
      "echo first >out; $PROGRAM >>out 2>&1; echo last >>out; tr -d oe <out; wc -c <out",
    );
    expect(stdout).toBe(`first\nlast\n${2 ** 21 + 11}\n`);
  });

  test("is written on where the file's other writer stopped", async () => {
    const { stdout } = await write(
      "{ echo first; $PROGRAM; echo last; } >out 2>/dev/null; tr -d o <out; wc -c <out",
    );
    expect(stdout).toBe(`first\nlast\n${2 ** 20 + 11}\n`);
  });

  test.skipIf(Bun.which("perl") === null).each(["$PROGRAM | cat", "$PROGRAM"])(
    "that a parent made non-blocking arrives whole: %s",
    async (line) => {
      const others = `perl -MFcntl -e 'fcntl(STDOUT, F_SETFL, O_NONBLOCK); fcntl(STDERR, F_SETFL, O_NONBLOCK); exec @ARGV' `;
      expect(await write(others + line)).toEqual(whole);
    },
  );

  test.each([
    ["$PROGRAM | true", "EPIPE"],
    ["$PROGRAM >/dev/full", "ENOSPC"],
    ["$PROGRAM >&-", "EBADF"],
    ["$PROGRAM <&- >&-", "EBADF"],
  ])("that can't be written is an error: %s", async (line, code) => {
    expect((await write(line)).report).toBe(`files were read\n${code}\nwritten\n`);
  });

  test.each(["$PROGRAM >/dev/null", "$PROGRAM 1<>/dev/null", "$PROGRAM <&- >out"])(
    "that takes everything is none: %s",
    async (line) => {
      expect((await write(line)).report).toBe("files were read\nwritten\nwritten\n");
    },
  );
});
