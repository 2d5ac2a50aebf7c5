import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { Duplex } from "node:stream";
import type { Environment } from "../runtime.ts";
import { outsideLine } from "../printable.ts";

/** What SSH runs over: a TCP connection, or a program. */
export interface ByteStream extends Duplex {
  readonly bytesRead: number;
}

const mostErrorCharacters = 2_000;

/**
 * A program's input and output as one stream. If the program ends without having written anything,
 * the stream fails with what it said. It has a session of its own, so that Ctrl-C doesn't end it
 * before this program has used it to clean up; without this program, its input ends.
 */
export function openProgramStream(
  [program = "", ...words]: readonly string[],
  environment: Environment,
): ByteStream {
  return new ProgramStream(
    spawn(program, words, { env: { ...environment }, detached: true, stdio: "pipe" }),
  );
}

class ProgramStream extends Duplex implements ByteStream {
  bytesRead = 0;
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(child: ChildProcessWithoutNullStreams) {
    super({ allowHalfOpen: false });
    this.#child = child;
    const said = { text: "" };
    // The program may fail before anybody listens, which would end this one.
    this.on("error", () => {});
    child.once("error", (error) => this.destroy(error));
    child.stdin.on("error", () => {});
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      said.text = (said.text + chunk).slice(-mostErrorCharacters);
    });
    child.stdout.on("data", (chunk: Buffer) => {
      this.bytesRead += chunk.length;
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.once("close", () => {
      if (this.bytesRead > 0) this.push(null);
      else this.destroy(new Error(outsideLine(said.text.trim().split("\n").at(-1)) || "no answer"));
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _: string, done: (error?: Error | null) => void): void {
    this.#child.stdin.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#child.stdin.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }
}
