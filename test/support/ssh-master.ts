/** A master connection of OpenSSH in its proxy mode, whose packets the test writes. */
import { type Socket, createServer } from "node:net";
import { join } from "node:path";
import { openMasterSession } from "../../src/ssh/session/master-session.ts";
import { scratchFolder } from "./scratch-folder.ts";

export const u32 = (...values: readonly number[]): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    }),
  );
export const framed = (...parts: readonly Buffer[]): Buffer => {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([u32(bytes.length), bytes]);
};
/** A packet of SSH's connection protocol for the session's channel, behind which follows what the node sends. */
export const packet = (type: number, ...rest: readonly Buffer[]): Buffer =>
  framed(Buffer.from([0, type]), u32(0), ...rest);
export const sshString = (value: string): Buffer =>
  Buffer.concat([u32(value.length), Buffer.from(value)]);
export const opened = packet(91, u32(7, 2 ** 20, 32_768));

/** A master connection that opens a session, and sends these packets once a command begins. */
export async function startMaster(answer: Buffer, packets: (socket: Socket) => unknown) {
  const scratch = await scratchFolder();
  const path = join(scratch.path, "master");
  const server = createServer((socket) => {
    const steps = [
      () => socket.write(Buffer.concat([framed(u32(1, 4)), framed(u32(0x8000000f, 0))])),
      () => socket.write(answer),
      () => packets(socket),
    ];
    socket.on("data", () => steps.shift()?.()).on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Resolves with the exit status and the characters of the command's output, once its channel has closed. */
export async function runTrue(path: string) {
  using session = await openMasterSession(path);
  const channel = session.exec("true");
  const seen: { status?: unknown; output: number } = { output: 0 };
  channel
    .on("exit", (status) => (seen.status = status))
    .on("data", (chunk: Buffer) => (seen.output += chunk.length));
  channel.stderr.resume();
  await new Promise((resolve) => channel.once("close", resolve));
  return seen;
}
