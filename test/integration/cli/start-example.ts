/** Starts the example program as a child process. */
import { join } from "node:path";

const program = join(import.meta.dir, "example-program.ts");

export interface Ended {
  readonly exitCode: number | null;
  readonly signal: Bun.Subprocess["signalCode"];
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment without variables that the tests' machine may have set. */
const environment = (own: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: "/nonexistent",
  // Bun would make that folder.
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0",
  // So wide that no message wraps.
  COLUMNS: "10000",
  ...own,
});

export interface Running {
  readonly child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  /** Resolves when stderr contains this text. Rejects if stderr ends without it. */
  until(text: string): Promise<void>;
  ended(): Promise<Ended>;
}

export function startExample(
  argv: readonly string[],
  own: Readonly<Record<string, string>> = {},
): Running {
  const command = [process.execPath, program, ...argv];
  return follow(
    Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "pipe", env: environment(own) }),
  );
}

export async function runExample(
  argv: readonly string[],
  own: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const running = startExample(argv, own);
  await running.child.stdin.end();
  return await running.ended();
}

function follow(child: Bun.Subprocess<"pipe", "pipe", "pipe">): Running {
  const seen = { text: "", isOver: false };
  const waiting = new Set<() => void>();
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stderr) {
      seen.text += decoder.decode(bytes, { stream: true });
      for (const check of waiting) check();
    }
    seen.isOver = true;
    for (const check of waiting) check();
  })();
  const stdout = child.stdout.text();
  return {
    child,
    until: async (text) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const check = (): void => {
        if (seen.text.includes(text)) resolve();
        else if (seen.isOver)
          reject(new Error(`stderr ended without ${JSON.stringify(text)}: ${seen.text}`));
      };
      waiting.add(check);
      check();
      await promise;
      waiting.delete(check);
    },
    ended: async () => {
      await Promise.all([child.exited, reading]);
      return {
        exitCode: child.exitCode,
        signal: child.signalCode,
        stdout: await stdout,
        stderr: seen.text,
      };
    },
  };
}

/** Runs one line of shell, in which `$EXAMPLE` is the program. Its stdin has this input, or no end. */
export async function runShell(
  line: string,
  own: Readonly<Record<string, string>> = {},
  input?: string,
): Promise<Ended> {
  const running = startShell(line, own);
  if (input !== undefined) {
    await running.child.stdin.write(input);
    await running.child.stdin.end();
  }
  return await running.ended();
}

export function startShell(line: string, own: Readonly<Record<string, string>> = {}): Running {
  const env = environment({ ...own, EXAMPLE: `${process.execPath} ${program}` });
  return follow(
    Bun.spawn(["bash", "-c", line], { stdin: "pipe", stdout: "pipe", stderr: "pipe", env }),
  );
}

type Shown = Pick<Ended, "exitCode" | "signal"> & { readonly shown: string };

/** Runs it on a terminal. `typed` maps an output to the input that follows it. */
export async function runOnTerminal(
  argv: readonly string[],
  typed: Readonly<Record<string, string>> = {},
  own: Readonly<Record<string, string>> = {},
  cols = 60,
): Promise<Shown> {
  return await onTerminal([process.execPath, program, ...argv], typed, own, cols);
}

/** Runs one line of shell on a terminal, in which `$EXAMPLE` is the program. */
export async function runShellOnTerminal(
  line: string,
  typed: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>> = {},
): Promise<Shown> {
  return await onTerminal(
    ["bash", "-c", line],
    typed,
    { ...own, EXAMPLE: `${process.execPath} ${program}` },
    60,
  );
}

async function onTerminal(
  command: readonly string[],
  typed: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  cols: number,
): Promise<Shown> {
  const shown: string[] = [];
  const answers = new Map(Object.entries(typed));
  const { promise: allShown, resolve } = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    env: environment({ TERM: "xterm-256color", ...own }),
    terminal: {
      cols,
      rows: 24,
      data: (terminal, bytes) => {
        shown.push(Buffer.from(bytes).toString());
        for (const [prompt, answer] of answers) {
          if (shown.join("").includes(prompt) && answers.delete(prompt)) terminal.write(answer);
        }
      },
      exit: () => resolve(),
    },
  });
  await Promise.all([child.exited, allShown]);
  return { exitCode: child.exitCode, signal: child.signalCode, shown: shown.join("") };
}
