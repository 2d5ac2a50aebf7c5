/** What QEMU does for templates of machines and for their copies, without a guest. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";

/** A line on QEMU's monitor. */
export interface MonitorCommand {
  readonly execute: string;
  readonly arguments?: { readonly uri?: string };
  readonly id?: number | string;
}

export class TemplateMachine {
  readonly isCopy: boolean;
  readonly #memory: string | undefined;
  readonly #canSave: boolean;
  readonly #saved: Buffer;
  #state: string;

  /** `line` is QEMU's command line. */
  constructor(
    line: string,
    {
      canSave,
      savedBytes = 0,
    }: { readonly canSave: boolean; readonly savedBytes?: number | undefined },
  ) {
    this.isCopy = line.includes("-incoming");
    // It receives the memory of a machine that is saved, or writes its own.
    this.#memory = /mem-path=([^,]+),share=on/.exec(line)?.[1];
    this.#canSave = canSave;
    this.#saved = randomBytes(savedBytes);
    this.#state = this.isCopy ? "inmigrate" : "running";
  }

  get isTemplate(): boolean {
    return this.#memory !== undefined;
  }

  async writeMemory(): Promise<void> {
    if (this.#memory !== undefined)
      await writeFile(this.#memory, this.isCopy ? this.#saved : "memory");
  }

  /** Returns the result of a command on the monitor. */
  execute(command: string, uri: string | undefined): unknown {
    const next = { stop: "paused", "migrate-incoming": "paused", cont: "running" }[command];
    if (next !== undefined) this.#state = next;
    if (command === "migrate" && this.#canSave && uri!.startsWith("exec:"))
      Bun.spawnSync(["sh", "-c", uri!.replace(/^exec:/, "")], { stdin: Buffer.from("state") });
    if (command === "query-migrate")
      return this.#canSave
        ? { status: "completed" }
        : { status: "failed", "error-desc": "something odd" };
    if (command === "query-version") return { qemu: { major: 7, minor: 2, micro: 0 } };
    return command === "query-status" ? { status: this.#state } : {};
  }
}

/** Serves a socket whose clients send lines, as QEMU's monitor and a node's agent have them. */
export async function listenForLines(
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
      for (const each of lines.filter(Boolean)) onLine(socket, each);
    });
  });
  const listening = Promise.withResolvers<void>();
  server.listen(path, listening.resolve);
  await listening.promise;
}
