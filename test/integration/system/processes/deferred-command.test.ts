import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { deferCommand } from "../../../../src/system/processes/run-program.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const limitMs = 60_000;
const program = join(import.meta.dir, "deferred-command-program.ts");

test("a deferred command waits until it is told to run, and its end is reported", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "ran");
  const script = 'echo "$2" >"$1"; echo "a reason" >&2; head -c 200000 /dev/zero; exit 3';
  const environment = { PATH: process.env["PATH"], OWN: "yes" };
  const command = await deferCommand(
    ["/bin/sh", "-c", script, "sh", file, "two  words"],
    environment,
    limitMs,
  );
  expect(existsSync(file)).toBe(false);
  expect(await command.run()).toEqual({ status: 3, stdout: "", stderr: "a reason\n" });
  expect(await readFile(file, "utf8")).toBe("two  words\n");
});

test("a deferred command that can't be started has a status too", async () => {
  const ended = await (await deferCommand(["/nonexistent/program"], {}, limitMs)).run();
  expect(ended).toMatchObject({
    status: 127,
    stderr: expect.stringContaining("/nonexistent/program"),
  });
});

test("a deferred command that hangs is ended at its limit, and what it says is bounded", async () => {
  const script = "head -c 5000000 /dev/zero | tr '\\0' x >&2; exec sleep 60";
  const command = await deferCommand(
    ["/bin/sh", "-c", script],
    { PATH: process.env["PATH"] },
    2_000,
  );
  const { status, stderr } = await command.run();
  expect(status).toBeUndefined();
  expect(stderr.length).toBeWithin(100_000, 2_500_000);
});

test("a deferred command runs even if its whole process group is killed", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "ran");
  const child = spawn(process.execPath, [program, file], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  expect(existsSync(file)).toBe(false);
  process.kill(-child.pid!, "SIGKILL");
  await until("the deferred command", async () => (await readFile(file, "utf8")) === "done\n");
});
