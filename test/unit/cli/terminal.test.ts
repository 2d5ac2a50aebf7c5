import { describe, expect, test } from "bun:test";
import type { ProcessLike } from "../../../src/cli/command.ts";
import { type Outputs, Terminal, answers } from "../../../src/cli/terminal.ts";
import type { Output } from "../../../src/system/processes/output.ts";
import { failureOf } from "../../support/failure-of.ts";

/** An output whose reader takes one text whenever the test says so. */
class SlowOutput implements Output {
  readonly taken: string[] = [];
  readonly #offered: (() => void)[] = [];

  write(text: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#offered.push(() => {
      this.taken.push(text);
      resolve();
    });
    return promise;
  }

  /** Takes the next text. */
  take(): void {
    this.#offered.shift()?.();
  }

  [Symbol.dispose](): void {}
}

/** An output that fails. Keeps what it was asked to write. */
function failingOutput(code: string | undefined) {
  const asked: string[] = [];
  const error = Object.assign(new Error(`failed: ${code}`), code === undefined ? {} : { code });
  const write = async (text: string): Promise<void> => {
    asked.push(text);
    await Promise.reject(error);
  };
  return { asked, output: { write, [Symbol.dispose]: () => {} } };
}

const open = (outputs: Partial<Outputs>, host: Pick<ProcessLike, "binding"> = {}): Terminal =>
  new Terminal({ env: {}, ...host } as unknown as ProcessLike, {
    stdout: new SlowOutput(),
    stderr: new SlowOutput(),
    ...outputs,
  });

test.each([
  [0, 0, [80, 24]],
  [undefined, undefined, [80, 24]],
  [60, 10, [60, 10]],
])("a terminal that says %p columns and %p rows is taken for %p", (columns, rows, taken) => {
  class TTY {
    constructor(descriptor: number) {
      if (descriptor !== 2 || columns === undefined)
        throw new TypeError(`fd${descriptor} is not a tty`);
    }

    getWindowSize(size: [number, number]): void {
      size.splice(0, 2, columns ?? 0, rows ?? 0);
    }
  }
  const { screen } = open({}, { binding: () => ({ TTY }) });
  expect([screen.columns, screen.rows]).toEqual(taken);
});

test("everything but what is drawn is made printable", () => {
  const [stdout, stderr] = [new SlowOutput(), new SlowOutput()];
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
    const streams = { stdout: new SlowOutput(), stderr: new SlowOutput() };
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

test("lines that arrive together share one wait for a reader, however many there are", async () => {
  const stdout = new SlowOutput();
  const terminal = open({ stdout });
  const waits = Array.from({ length: 1_000 }, (_, line) => terminal.paint("stdout", `${line}\n`));
  expect(new Set(waits).size).toBe(2);
  for (const _ of waits) stdout.take();
  await waits.at(-1);
  expect(stdout.taken).toHaveLength(1_000);
  terminal.write("stdout", "another");
  const state = { isFlushed: false };
  const flushed = terminal.flush().then(() => (state.isFlushed = true));
  await new Promise(setImmediate);
  expect(state).toEqual({ isFlushed: false });
  stdout.take();
  await flushed;
});

describe("a stream that fails", () => {
  test.each([
    ["stdout", undefined, "failed: undefined"],
    ["stdout", "ENOSPC", "failed: ENOSPC"],
    ["stdout", "EPIPE", undefined],
    ["stdout", "EIO", undefined],
    ["stderr", "ENOSPC", undefined],
  ] as const)(
    "gets no more output, and is no problem, unless the result is lost: %s, %s",
    async (name, code, failure) => {
      const { asked, output } = failingOutput(code);
      const terminal = open({ [name]: output });
      for (const text of ["", "one", "two"]) {
        terminal.write(name, text);
        await terminal.flush();
      }
      expect(asked).toEqual(["one"]);
      expect(terminal.stdoutFailure?.message).toBe(failure);
    },
  );
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
    confirm(
      "Remove the cluster: a\x1b[2J\nNothing to remove\u202E?",
      AbortSignal.abort(new Error("over")),
    ),
  );
  expect(asked).toEqual(["Remove the cluster: a\uFFFD[2J Nothing to remove\uFFFD? [y/N] "]);
});
