import { describe, expect, test } from "bun:test";
import { Writable } from "node:stream";
import type { ProcessLike } from "../../../src/cli/command.ts";
import { Terminal, answers } from "../../../src/cli/terminal.ts";
import { failureOf } from "../../support/failure-of.ts";

/** A stream whose reader takes one text whenever the test says so. */
class SlowStream extends Writable {
  readonly taken: string[] = [];
  readonly #offered: (() => void)[] = [];

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(text: string, _: unknown, settle: (error?: Error) => void): void {
    this.#offered.push(() => {
      this.taken.push(text);
      settle();
    });
  }

  /** Takes the next text. */
  take(): void {
    this.#offered.shift()?.();
  }
}

const failing = (code: string): Writable =>
  new Writable({ write: (_text, _encoding, settle) => settle(Object.assign(new Error(`failed: ${code}`), { code })) });

const open = (streams: { readonly stdout?: unknown; readonly stderr?: unknown }): Terminal =>
  new Terminal({ env: {}, ...streams } as unknown as ProcessLike);

test.each([
  [0, 0, [80, 24]],
  [undefined, undefined, [80, 24]],
  [60, 10, [60, 10]],
])("a terminal that says %p columns and %p rows is taken for %p", (columns, rows, taken) => {
  const { screen } = open({ stderr: { columns, rows } });
  expect([screen.columns, screen.rows]).toEqual(taken);
});

test("everything but what is drawn is made printable", () => {
  const [stdout, stderr] = [new SlowStream(), new SlowStream()];
  const terminal = open({ stdout, stderr });
  terminal.write("stdout", "a\x1b[2Jb\n");
  terminal.screen.write("a\x1b[2Jb\n");
  stdout.take();
  stderr.take();
  expect([stdout.taken, stderr.taken]).toEqual([["a\uFFFD[2Jb\n"], ["a\x1b[2Jb\n"]]);
});

test.each([[["stdout"]], [["stdout", "stdout", "stderr"]]] as const)(
  "flush waits until slow readers have taken everything: %p",
  async (names) => {
    const streams = { stdout: new SlowStream(), stderr: new SlowStream() };
    const terminal = open(streams);
    await terminal.flush();
    for (const name of names) terminal.write(name, "text");
    const state = { isFlushed: false };
    const flushed = terminal.flush().then(() => (state.isFlushed = true));
    for (const name of names) {
      await new Promise(setImmediate);
      expect(state).toEqual({ isFlushed: false });
      streams[name].take();
    }
    await flushed;
    expect([...streams.stdout.taken, ...streams.stderr.taken]).toEqual(names.map(() => "text"));
  },
);

describe("a stream that fails", () => {
  test.each([
    ["stdout", "ENOSPC", "failed: ENOSPC"],
    ["stdout", "EPIPE", undefined],
    ["stdout", "EIO", undefined],
    ["stderr", "ENOSPC", undefined],
  ] as const)("is no problem, unless the result is lost: %s, %s", async (name, code, failure) => {
    const stream = failing(code);
    const terminal = open({ [name]: stream });
    for (const text of ["one", "two"]) terminal.write(name, text);
    await terminal.flush();
    expect(terminal.stdoutFailure?.message).toBe(failure);
    expect(stream.listenerCount("error")).toBe(1);
  });

  test("gets no more output", async () => {
    const calls: string[] = [];
    const write = (text: string): void => {
      calls.push(text);
      throw new Error("bad file descriptor");
    };
    const terminal = open({ stdout: { write, on: () => {} } });
    for (const text of ["", "one", "two"]) {
      terminal.write("stdout", text);
      await terminal.flush();
    }
    expect(calls).toEqual(["one"]);
    expect(terminal.stdoutFailure?.message).toBe("bad file descriptor");
  });

  test("because its reader closed it has no other failure", () => {
    const stdout = new SlowStream();
    const terminal = open({ stdout });
    terminal.write("stdout", "one");
    stdout.emit("error", Object.assign(new Error("closed"), { code: "EPIPE" }));
    stdout.emit("error", Object.assign(new Error("disk full"), { code: "ENOSPC" }));
    expect(terminal.stdoutFailure).toBeUndefined();
  });
});

test("a question that names something from outside is one printable line", async () => {
  const asked: string[] = [];
  const { confirm } = answers({
    isTerminal: true,
    environment: {},
    ask: (prompt) => asked.push(prompt),
    hide: () => {},
    onAbandon: () => ({ [Symbol.dispose]: () => {} }),
  });
  await failureOf(
    confirm("Remove the cluster: a\x1b[2J\nNothing to remove\u202E?", AbortSignal.abort(new Error("over"))),
  );
  expect(asked).toEqual(["Remove the cluster: a\uFFFD[2J Nothing to remove\uFFFD? [y/N] "]);
});
