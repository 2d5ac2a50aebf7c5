/**
 * A session over a master connection, without an ssh of its own. From OpenSSH 7.4 on, a master's socket has a mode in which it carries the packets of
 * SSH's connection protocol as they are. https://github.com/openssh/openssh-portable/blob/V_9_2/PROTOCOL.mux (section 9),
 * https://www.rfc-editor.org/rfc/rfc4254
 */
import { type Socket, createConnection } from "node:net";
import { Duplex, Readable } from "node:stream";
import type { CommandChannel } from "../connection/exec-channel.ts";

/** Thrown if the master connection opens no session, so that the node has received nothing. */
export class NoSession extends Error {}

/** A session for one command. Disposal ends it. */
export interface MasterSession extends Disposable {
  /** Starts a shell line on the node. A channel that closes without an exit status has lost the node. */
  exec(line: string): CommandChannel;
}

const openLimitMs = 5_000;
const helloType = 1;
const proxyRequest = 0x1000000f;
const proxyAnswer = 0x8000000f;
const muxVersion = 4;
const type = {
  open: 90,
  opened: 91,
  refused: 92,
  adjust: 93,
  data: 94,
  extendedData: 95,
  eof: 96,
  close: 97,
  request: 98,
  failure: 100,
} as const;
/** How many unread bytes the node may send. */
const windowBytes = 2 * 1024 * 1024;
const mostInPacket = 32 * 1024;
const longestPacket = 1024 * 1024;

/** Throws `NoSession`. */
export async function openMasterSession(socketPath: string): Promise<MasterSession> {
  const socket = createConnection({ path: socketPath });
  const session = new ProxySession(socket);
  const timer = setTimeout(() => socket.destroy(), openLimitMs);
  try {
    await session.opened;
    return session;
  } finally {
    clearTimeout(timer);
  }
}

class ProxySession implements MasterSession {
  readonly opened: Promise<void>;
  readonly #opening = Promise.withResolvers<void>();
  readonly #socket: Socket;
  readonly #stdout: Duplex;
  readonly #stderr: Readable;
  #unread: Buffer = Buffer.alloc(0);
  #isProxy = false;
  /** The channel's number on the other side, and how many bytes that side accepts now. */
  #peer = 0;
  #window = 0;
  /** How many bytes the node may still send. */
  #granted = windowBytes;
  /** Bytes received, but not yet granted again. */
  #taken = 0;
  #unsent: { readonly chunk: Buffer; readonly done: () => void } | undefined;

  constructor(socket: Socket) {
    this.opened = this.#opening.promise;
    this.#socket = socket;
    const grant = (): void => this.#grant();
    this.#stderr = new Readable({ read: grant });
    this.#stdout = new Duplex({
      autoDestroy: false,
      read: grant,
      write: (chunk: Buffer, _encoding, done) => {
        this.#unsent = { chunk, done };
        this.#sendData();
      },
      final: (done) => {
        this.#send(type.eof, u32(this.#peer));
        done();
      },
    });
    socket.on("data", (chunk: Buffer) => this.#receive(chunk)).on("error", () => {});
    socket.on("close", () => this.#end());
    socket.write(
      Buffer.concat([framed(u32(helloType), u32(muxVersion)), framed(u32(proxyRequest), u32(0))]),
    );
  }

  exec(line: string): CommandChannel {
    this.#send(type.request, u32(this.#peer), text("exec"), wantsReply, text(line));
    const close = (): void => void this.#socket.destroy();
    return Object.assign(this.#stdout, { stderr: this.#stderr, close });
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #send(messageType: number, ...parts: readonly Buffer[]): void {
    // No padding.
    if (this.#socket.writable) this.#socket.write(framed(Buffer.from([0, messageType]), ...parts));
  }

  #sendData(): void {
    if (this.#unsent === undefined) return;
    const { chunk, done } = this.#unsent;
    const sent = chunk.subarray(0, Math.min(this.#window, mostInPacket));
    if (sent.length === 0) return;
    this.#window -= sent.length;
    this.#send(type.data, u32(this.#peer), text(sent));
    const rest = chunk.subarray(sent.length);
    this.#unsent = rest.length === 0 ? undefined : { chunk: rest, done };
    if (rest.length === 0) done();
    else this.#sendData();
  }

  /** Lets the node send more once most of what it has sent is read. */
  #grant(): void {
    const waiting = this.#stdout.readableLength + this.#stderr.readableLength;
    if (this.#taken < windowBytes / 2 || waiting > windowBytes / 2) return;
    this.#send(type.adjust, u32(this.#peer), u32(this.#taken));
    this.#granted += this.#taken;
    this.#taken = 0;
  }

  #receive(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    while (this.#unread.length >= 4) {
      const length = this.#unread.readUInt32BE(0);
      if (length < 5 || length > longestPacket) return void this.#socket.destroy();
      if (this.#unread.length < 4 + length) return;
      const packet = this.#unread.subarray(4, 4 + length);
      this.#unread = this.#unread.subarray(4 + length);
      if (!this.#takeWhole(packet)) return void this.#socket.destroy();
    }
  }

  /** The master passes on what the node has written. Returns false if that is cut off. */
  #takeWhole(packet: Buffer): boolean {
    try {
      if (this.#isProxy) this.#take(packet);
      else this.#takeFromMaster(packet);
      return true;
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }

  #takeFromMaster(packet: Buffer): void {
    const kind = packet.readUInt32BE(0);
    if (kind === helloType) return;
    if (kind !== proxyAnswer) return void this.#socket.destroy();
    this.#isProxy = true;
    this.#send(type.open, text("session"), u32(0), u32(windowBytes), u32(mostInPacket));
  }

  #take(packet: Buffer): void {
    // Behind the padding's length, the type and our number of the channel.
    const rest = packet.subarray(6);
    switch (packet[1]) {
      case type.opened:
        this.#peer = rest.readUInt32BE(0);
        this.#window = rest.readUInt32BE(4);
        return this.#opening.resolve();
      case type.refused:
        return void this.#socket.destroy();
      case type.adjust:
        this.#window += rest.readUInt32BE(0);
        return this.#sendData();
      case type.data:
        return this.#pass(this.#stdout, rest.subarray(4));
      case type.extendedData:
        return this.#pass(this.#stderr, rest.subarray(8));
      case type.request:
        return this.#takeRequest(rest);
      case type.failure:
        // sshd runs no commands.
        this.#stdout.emit("exit", 255);
        return void this.#socket.destroy();
      case type.close:
        this.#send(type.close, u32(this.#peer));
        return void this.#socket.end();
      default:
    }
  }

  #pass(stream: Readable, chunk: Buffer): void {
    this.#taken += chunk.length;
    this.#granted -= chunk.length;
    if (this.#granted < 0) return void this.#socket.destroy();
    stream.push(Buffer.from(chunk));
    this.#grant();
  }

  #takeRequest(rest: Buffer): void {
    const name = textIn(rest);
    const isAnswered = rest[4 + name.length] === 1;
    const value = rest.subarray(5 + name.length);
    if (name === "exit-status") this.#stdout.emit("exit", value.readUInt32BE(0));
    else if (name === "exit-signal") this.#stdout.emit("exit", null, `SIG${textIn(value)}`);
    // Such as a question whether we are still there.
    else if (isAnswered) this.#send(type.failure, u32(this.#peer));
  }

  #end(): void {
    this.#opening.reject(new NoSession("The master connection opens no session."));
    this.opened.catch(() => {});
    const streams = [this.#stdout, this.#stderr];
    const read = streams.map(
      (stream) =>
        new Promise((resolve) =>
          stream.readableEnded ? resolve(undefined) : stream.once("end", resolve),
        ),
    );
    for (const stream of streams) stream.push(null);
    const close = (): void => void this.#stdout.emit("close");
    Promise.all(read).then(close, close);
  }
}

function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
}

/** A true boolean. */
const wantsReply = Buffer.from([1]);

function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u32(bytes.length), bytes]);
}

const textIn = (bytes: Buffer): string => bytes.toString("latin1", 4, 4 + bytes.readUInt32BE(0));

function framed(...parts: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([u32(bytes.length), bytes]);
}
