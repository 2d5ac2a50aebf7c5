/** A monitor without a QEMU: answers the commands of QMP as a test says. */
import { mkdir } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { errorCode } from "../../../../src/system/files/private-file.ts";
import { type MonitorCommand, monitorName } from "../../../../src/backend/vm/qemu/monitor.ts";

type Answer = (command: MonitorCommand) => Promise<object | undefined>;

/** Listens in the machine's folder. Never answers a command for which `answer` returns undefined, and refuses it for an `Error`. */
export async function startMonitor(folder: string, answer: Answer): Promise<AsyncDisposable> {
  await mkdir(folder, { recursive: true });
  const server = createServer((socket) => void converse(socket, answer).catch(unlessClosed));
  const listening = Promise.withResolvers<void>();
  server.listen(join(folder, monitorName), () => listening.resolve());
  await listening.promise;
  return { [Symbol.asyncDispose]: async () => void server.close() };
}

/** A program that is interrupted closes its connection. */
function unlessClosed(error: unknown): void {
  if (!["ECONNRESET", "EPIPE"].includes(errorCode(error) ?? "")) throw error;
}

async function converse(socket: Socket, answer: Answer): Promise<void> {
  socket.on("error", () => {});
  socket.write('{"QMP": {}}\r\n');
  for await (const line of createInterface(socket)) {
    const { id, ...command } = JSON.parse(line) as MonitorCommand & { readonly id: number };
    const result = command.execute === "qmp_capabilities" ? {} : await answer(command);
    const told =
      result instanceof Error
        ? { error: { class: "GenericError", desc: result.message } }
        : { return: result };
    if (result !== undefined) socket.write(`${JSON.stringify({ ...told, id })}\r\n`);
  }
}
