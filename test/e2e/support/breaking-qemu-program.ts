/**
 * Stands for a QEMU whose kvm passes its trial and breaks a machine later. Usage: breaking-qemu-program.ts STATE MILLISECONDS QEMU WORDS…
 * Trials, and all that doesn't use kvm, are the real QEMU's. A machine under kvm is this program: it speaks as much QMP as is asked of it, and after
 * so many milliseconds enters the run state STATE, or dies where that is `crash`.
 */
import { spawn } from "node:child_process";
import { appendFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { daemonize, holdProcessFile } from "../../support/daemonize.ts";

const complaint =
  "KVM internal error. Suberror: 1\nextra data[0]: 0x0000000000000001\nemulation failure\nEAX=0000001f EBX=00000003\n";
const [state = "", delay = "", qemu = "", ...words] = process.argv.slice(2);
const wordAfter = (name: string): string => words[words.indexOf(name) + 1] ?? "";

function asReal(): void {
  const isTrial = words.some((word) => word.startsWith("isa-debug-exit"));
  const real = words.map((word) => (isTrial && word === "kvm" ? "tcg" : word));
  const child = spawn(qemu, real, { stdio: "inherit" });
  process.once("SIGTERM", () => child.kill("SIGTERM"));
  child.once("exit", (status) => {
    process.exitCode = status ?? 1;
  });
}

function serve(): void {
  const pidFile = wordAfter("-pidfile");
  const run = { state: "running" };
  const end = (): void => {
    rmSync(pidFile, { force: true });
    process.exitCode = 0;
    process.kill(process.pid, "SIGKILL");
  };
  process.once("SIGTERM", end);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write('{"QMP": {"version": {}, "capabilities": []}}\r\n');
    socket.on("data", (data) => {
      for (const line of data.toString().split("\n").filter(Boolean)) {
        const { execute, id } = JSON.parse(line) as {
          readonly execute: string;
          readonly id?: string;
        };
        const result =
          execute === "query-status" ? { status: run.state, running: run.state === "running" } : {};
        socket.write(`${JSON.stringify({ return: result, ...(id !== undefined && { id }) })}\r\n`);
      }
    });
  });
  rmSync("monitor.sock", { force: true });
  server.listen("monitor.sock", () => holdProcessFile(pidFile));
  setTimeout(() => {
    if (state === "internal-error" || state === "crash") appendFileSync(wordAfter("-D"), complaint);
    if (state === "crash") process.kill(process.pid, "SIGKILL");
    run.state = state;
  }, Number(delay));
}

if (wordAfter("-accel") !== "kvm" || words.some((word) => word.startsWith("isa-debug-exit")))
  asReal();
else if (words.includes("-daemonize"))
  await daemonize([import.meta.path, state, delay, qemu], words);
else serve();
