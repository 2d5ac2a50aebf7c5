/**
 * Stands for QEMU's programs in a VM world. A machine is this program: it speaks as much QMP as is asked of it, and its forwarded port 22 is an SSH
 * server whose answers are in FOLDER/answers.json. FOLDER/faults.json says which calls fail.
 * Usage: qemu-program.ts FOLDER PROGRAM WORDS…
 */
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { InProcessMachine } from "../../local-cloud/machines/in-process-machine.ts";
import { type ScriptedAnswer, ScriptedAnswers } from "../../local-cloud/machines/scripted-answers.ts";
import { callOf, type QemuFault } from "./qemu-calls.ts";

const [folder = "", program = "", ...words] = process.argv.slice(2);
const wordAfter = (name: string): string => words[words.indexOf(name) + 1] ?? "";
const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), "utf8"));

/** What the probe of the accelerators exits with if all is well: the debug exit's value. */
const probeStatus = 33;

async function main(): Promise<void> {
  const call = callOf(program, words);
  const fault = (read("faults.json") as readonly QemuFault[]).find((candidate) => candidate.call === call);
  if (fault !== undefined) {
    appendFileSync(join(folder, "struck"), `${call}\n`);
    if (fault.stderr !== undefined) console.error(fault.stderr);
    if (fault.stdout !== undefined) console.log(fault.stdout);
    if (fault.hangs === true) await Bun.sleep(600_000);
    process.exitCode = fault.status ?? 1;
    if (fault.isCarriedOut !== true) return;
  }
  switch (call) {
    case "version":
      return console.log("QEMU emulator version 7.2.0");
    case "info":
      return console.log(JSON.stringify({ format: "raw", "virtual-size": 1_048_576 }));
    case "disk":
      return writeFileSync(words.at(-2)!, "");
    case "trial":
      process.exitCode = probeStatus;
      return;
    case "start":
      return daemonize();
    case "machine":
      return serve();
  }
}

/** Goes to the background as QEMU does: once the machine can be found. */
async function daemonize(): Promise<void> {
  const serving = words.filter((word) => word !== "-daemonize");
  spawn(process.execPath, [import.meta.path, folder, program, ...serving], { detached: true, stdio: "ignore" }).unref();
  while (!existsSync(wordAfter("-pidfile"))) await Bun.sleep(10);
}

async function serve(): Promise<void> {
  // QEMU outlives whatever a client does to its guest's SSH server, and so must its stand-in.
  process.on("uncaughtException", (error) => appendFileSync(join(folder, "crashes"), `${error.stack}\n`));
  const pidFile = wordAfter("-pidfile");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write('{"QMP": {"version": {}, "capabilities": []}}\r\n');
    socket.on("data", (data) => {
      for (const line of data.toString().split("\n").filter(Boolean)) {
        const { execute, id } = JSON.parse(line) as { readonly execute: string; readonly id?: string };
        const result = execute === "query-status" ? { status: runState(), running: true } : {};
        socket.write(`${JSON.stringify({ return: result, ...(id !== undefined && { id }) })}\r\n`);
      }
    });
  });
  process.once("SIGTERM", () => {
    rmSync(pidFile, { force: true });
    process.kill(process.pid, "SIGKILL");
  });
  rmSync("monitor.sock", { force: true });
  await startSsh();
  server.listen("monitor.sock", () => writeFileSync(pidFile, `${process.pid}\n`));
}

const runState = (): string =>
  existsSync(join(folder, "run-state")) ? readFileSync(join(folder, "run-state"), "utf8") : "running";

async function startSsh(): Promise<void> {
  const port = Number(/hostfwd=tcp:127\.0\.0\.1:(\d+)-:22\b/.exec(words.join(" "))?.[1]);
  const seed = /"driver":"vvfat".*?"dir":"([^"]+)"/.exec(words.join(" "))?.[1] ?? "";
  const request = {
    instanceId: wordAfter("-name"),
    hostname: "node",
    privateAddress: "10.0.0.2",
    distribution: "debian-12",
    imageUser: "admin",
    userData: readFileSync(join(seed, "user-data")),
  };
  const answers = new ScriptedAnswers();
  await new InProcessMachine(request, {
    publicAddress: "127.0.0.1",
    sshPort: port,
    onExec: async (exec, signal) => {
      answers.replace(read("answers.json") as readonly ScriptedAnswer[]);
      appendFileSync(join(folder, "commands"), `${exec.command}\n`);
      return answers.handle(exec, signal);
    },
    loginShell: () => ({}),
  }).start();
}

await main();
