/** A QEMU whose machines run nothing but answer on their monitor and as a template's agent. Arguments: its folder, then QEMU's. */
import { appendFile, writeFile } from "node:fs/promises";
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { daemonize, holdProcessFile } from "../../../../support/daemonize.ts";
import {
  type MonitorCommand,
  listenForLines,
  TemplateMachine,
} from "../../../../support/template-machine.ts";

export interface Behaviour {
  readonly version: string;
  /** What a template's agent reports. Empty: the machine ends. */
  readonly boot: string;
  /** What the agent of a copy reports when it has its script. */
  readonly copy: string;
  /** Whether a template can be saved. */
  readonly saves: boolean;
  /** How often a machine doesn't notice its power button. */
  readonly ignores?: number;
}

const [folder = "", ...words] = process.argv.slice(2);
const behaviour = JSON.parse(readFileSync(join(folder, "behaviour.json"), "utf8")) as Behaviour;
const line = words.join(" ");
const after = (word: string): string => words[words.indexOf(word) + 1] ?? "";

if (words.includes("--version")) console.log(`QEMU emulator version ${behaviour.version}`);
else if (line.includes("-machine none")) {
  for (const [, path] of line.matchAll(/addr\.path=(\S+)/g)) await writeFile(path!, "");
} else if (words.includes("-daemonize")) {
  await appendFile(join(folder, "started"), `${line}\n`);
  await daemonize([import.meta.path, folder], words);
} else await runMachine();

async function runMachine(): Promise<void> {
  const machine = new TemplateMachine(line, { canSave: behaviour.saves });
  await machine.writeMemory();
  const presses: string[] = [];
  await listenForLines("monitor.sock", (socket, text) => {
    const { execute, arguments: given, id } = JSON.parse(text) as MonitorCommand;
    socket.write(`${JSON.stringify({ return: machine.execute(execute, given?.uri), id })}\n`);
    if (execute !== "system_powerdown") return;
    presses.push(execute);
    appendFileSync(join(folder, "presses"), `${execute}\n`);
    if (presses.length > (behaviour.ignores ?? 0)) socket.once("close", powerOff);
  });
  await listenForLines(
    "identity.sock",
    (socket, text) => {
      appendFileSync(
        join(folder, "scripts"),
        `${Buffer.from(text, "base64").toString()}\n--end--\n`,
      );
      socket.write(`${behaviour.copy}\n`);
    },
    (socket) => {
      if (machine.isTemplate && behaviour.boot === "") powerOff();
      if (machine.isTemplate) socket.write(`${behaviour.boot}\n`);
    },
  );
  process.once("SIGTERM", powerOff);
  holdProcessFile(after("-pidfile"));
}

/** As in an orderly end, the process file disappears. */
function powerOff(): void {
  rmSync(after("-pidfile"), { force: true });
  process.kill(process.pid, "SIGKILL");
}
