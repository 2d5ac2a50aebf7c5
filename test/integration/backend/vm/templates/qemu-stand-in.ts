/** A QEMU whose machines run nothing but answer on their monitor and as a template's agent. Arguments: its folder, then QEMU's. */
import { appendFile, writeFile } from "node:fs/promises";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";

export interface Behaviour {
  readonly version: string;
  /** What a template's agent reports. */
  readonly boot: string;
  /** What the agent of a copy reports when it has its script. */
  readonly copy: string;
  /** Whether a template can be saved. */
  readonly saves: boolean;
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
  const own = words.filter((word) => word !== "-daemonize");
  const argv = [process.execPath, import.meta.path, folder, ...own];
  Bun.spawn(argv, { stdio: ["ignore", "ignore", "ignore"], detached: true }).unref();
  while (!existsSync(after("-pidfile"))) await Bun.sleep(10);
} else await runMachine();

async function runMachine(): Promise<void> {
  const memory = /mem-path=([^,]+),share=on/.exec(line)?.[1];
  const machine = { state: line.includes("-incoming") ? "inmigrate" : "running" };
  if (memory !== undefined) await writeFile(memory, "memory");
  const execute = (command: string, uri: string | undefined): unknown => {
    const next = { stop: "paused", "migrate-incoming": "paused", cont: "running" }[command];
    if (next !== undefined) machine.state = next;
    if (command === "migrate" && behaviour.saves)
      Bun.spawnSync(["sh", "-c", uri!.replace(/^exec:/, "")], { stdin: null });
    if (command === "query-migrate")
      return behaviour.saves ? { status: "completed" } : { status: "failed", "error-desc": "something odd" };
    return command === "query-status" ? { status: machine.state } : {};
  };
  await listen("monitor.sock", (socket, text) => {
    const {
      execute: command,
      arguments: given,
      id,
    } = JSON.parse(text) as {
      readonly execute: string;
      readonly arguments?: { readonly uri?: string };
      readonly id: number;
    };
    socket.write(`${JSON.stringify({ return: execute(command, given?.uri), id })}\n`);
  });
  await listen(
    "identity.sock",
    (socket, text) => {
      appendFileSync(join(folder, "scripts"), `${Buffer.from(text, "base64").toString()}\n--end--\n`);
      socket.write(`${behaviour.copy}\n`);
    },
    (socket) => memory !== undefined && socket.write(`${behaviour.boot}\n`),
  );
  process.once("SIGTERM", () => {
    rmSync(after("-pidfile"), { force: true });
    process.kill(process.pid, "SIGKILL");
  });
  await writeFile(after("-pidfile"), String(process.pid));
}

async function listen(
  path: string,
  onLine: (socket: Socket, text: string) => void,
  onConnection: (socket: Socket) => unknown = () => {},
): Promise<void> {
  const server = createServer((socket) => {
    const rest = { text: "" };
    onConnection(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      const lines = (rest.text + chunk.toString()).split("\n");
      rest.text = lines.pop()!;
      for (const each of lines) onLine(socket, each);
    });
  });
  const listening = Promise.withResolvers<void>();
  server.listen(path, listening.resolve);
  await listening.promise;
}
