/**
 * Stands for QEMU's programs in a VM world. A machine is this program: it speaks as much QMP as is asked of it, and its forwarded port 22 is an SSH
 * server whose answers are in FOLDER/answers.json. FOLDER/faults.json says which calls fail,
 * and FOLDER/template.json what becomes of templates.
 * Usage: qemu-program.ts FOLDER PROGRAM WORDS…
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { InProcessMachine } from "../../local-cloud/machines/in-process-machine.ts";
import {
  type ScriptedAnswer,
  ScriptedAnswers,
} from "../../local-cloud/machines/scripted-answers.ts";
import { daemonize, holdProcessFile } from "../../support/daemonize.ts";
import {
  type MonitorCommand,
  listenForLines,
  TemplateMachine,
} from "../../support/template-machine.ts";
import { callOf, type QemuFault, type TemplateBehaviour } from "./qemu-calls.ts";

const [folder = "", program = "", ...words] = process.argv.slice(2);
const wordAfter = (name: string): string => words[words.indexOf(name) + 1] ?? "";
const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), "utf8"));

/** What the probe of the accelerators exits with if all is well: the debug exit's value. */
const probeStatus = 33;

const shutDownMs = 1_000;

async function main(): Promise<void> {
  const call = callOf(program, words);
  const fault = (read("faults.json") as readonly QemuFault[]).find(
    (candidate) => candidate.call === call,
  );
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
    case "features":
      return console.log("user\nSupported formats: qcow2 vvfat");
    case "info":
      return console.log(JSON.stringify({ format: "raw", "virtual-size": 1_048_576 }));
    case "disk":
      return writeFileSync(words.at(-2)!, "");
    case "trial":
      process.exitCode = probeStatus;
      return;
    case "start":
      return daemonize([import.meta.path, folder, program], words);
    case "machine":
      return serve();
  }
}

async function serve(): Promise<void> {
  // QEMU outlives whatever a client does to its guest's SSH server, and so must its stand-in.
  process.on("uncaughtException", (error) =>
    appendFileSync(join(folder, "crashes"), `${error.stack}\n`),
  );
  const pidFile = wordAfter("-pidfile");
  const template = read("template.json") as TemplateBehaviour;
  const machine = new TemplateMachine(words.join(" "), template);
  await machine.writeMemory();
  const end = (): void => {
    rmSync(pidFile, { force: true });
    process.kill(process.pid, "SIGKILL");
  };
  process.once("SIGTERM", end);
  for (const socket of ["monitor.sock", "identity.sock"]) rmSync(socket, { force: true });
  if (!machine.isCopy && !machine.isTemplate) await startSsh();
  await listenForLines(
    "identity.sock",
    (socket, line) =>
      void startSsh(Buffer.from(line, "base64").toString()).then(() => socket.write("done\n")),
    (socket) => machine.isTemplate && template.boots && socket.write("ready\n"),
  );
  await listenForLines(
    "monitor.sock",
    (socket, line) => {
      const { execute, arguments: given, id } = JSON.parse(line) as MonitorCommand;
      if (execute === "system_powerdown") {
        appendFileSync(join(folder, "struck"), `${execute}\n`);
        setTimeout(end, shutDownMs);
      }
      const entered = execute === "query-status" ? runState() : undefined;
      const result =
        entered === undefined ? machine.execute(execute, given?.uri) : { status: entered };
      socket.write(`${JSON.stringify({ return: result, ...(id !== undefined && { id }) })}\r\n`);
    },
    (socket) => socket.write('{"QMP": {"version": {}, "capabilities": []}}\r\n'),
  );
  holdProcessFile(pidFile);
}

/** The state that all machines enter, if any. */
const runState = (): string | undefined =>
  existsSync(join(folder, "run-state"))
    ? readFileSync(join(folder, "run-state"), "utf8")
    : undefined;

/** With the script that makes a copy a node, which contains the host key; or with what the seed says. */
async function startSsh(script?: string): Promise<void> {
  const port = Number(/hostfwd=tcp:127\.0\.0\.1:(\d+)-[\d.]*:22\b/.exec(words.join(" "))?.[1]);
  const seed = /"driver":"vvfat".*?"dir":"([^"]+)"/.exec(words.join(" "))?.[1] ?? "";
  const request = {
    instanceId: wordAfter("-name"),
    hostname: "node",
    privateAddress: "10.0.0.2",
    distribution: "debian-12",
    imageUser: "admin",
    userData: withHostKey(readFileSync(join(seed, "user-data"), "utf8"), script),
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
    // In the machine's folder, as on its disk.
    hostKeyFile: "guest-host-key",
  }).start();
}

function withHostKey(userData: string, script: string | undefined): Buffer {
  const key = /^HOST_KEY='([^']*)'$/m.exec(script ?? "")?.[1];
  if (key === undefined) return Buffer.from(userData);
  const [first, ...rest] = userData.split("\n");
  const settings = JSON.parse(rest.join("\n")) as Readonly<Record<string, unknown>>;
  return Buffer.from(
    `${first}\n${JSON.stringify({ ...settings, ssh_keys: { ed25519_private: `${key}\n` } })}`,
  );
}

await main();
