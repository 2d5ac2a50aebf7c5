/** Starts the built executables as a user's shell would. Uses nothing else of the product. */
import { join } from "node:path";
import { assertInSchema } from "../../support/results-schema.ts";

export interface Ended {
  /** The exit code; undefined when a signal ended the program. */
  readonly status: number | undefined;
  readonly signal: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly processId: number;
  /** Everything written to stderr so far. */
  stderr(): string;
  /** Resolves when this stands on stderr; rejects when the program ended or the limit passed before. */
  said(text: string | RegExp, limitMs?: number): Promise<void>;
  interrupt(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

export interface StartOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The words that start the program, if they are not its path alone. */
  readonly command?: readonly string[];
  readonly stdin?: string;
  /** After this many milliseconds it is killed, and the test fails. */
  readonly limitMs?: number;
}

export const repository = join(import.meta.dir, "..", "..", "..");
export const executablePath = (name: string): string => join(repository, "dist", name);

export function start(program: string, words: readonly string[], options: StartOptions): Running {
  const child = Bun.spawn([...(options.command ?? [executablePath(program)]), ...words], {
    cwd: options.cwd ?? repository,
    // So wide that no message wraps, whatever paths it names.
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: process.env["HOME"] ?? "/",
      COLUMNS: "10000",
      // No test asks this computer's own metadata service.
      AWS_EC2_METADATA_SERVICE_ENDPOINT: "http://127.0.0.1:1",
      ...options.environment,
    },
    stdin: options.stdin === undefined ? "ignore" : new Blob([options.stdin]),
    stdout: "pipe",
    stderr: "pipe",
    timeout: options.limitMs ?? 800_000,
    killSignal: "SIGKILL",
  });
  const written = { stderr: "" };
  const changed = { current: Promise.withResolvers<void>() };
  const follow = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) {
      written.stderr += decoder.decode(chunk, { stream: true });
      changed.current.resolve();
      changed.current = Promise.withResolvers<void>();
    }
  };
  const following = follow();
  const ended = Promise.all([child.exited, new Response(child.stdout).text(), following]).then(
    ([, stdout]) => {
      assertJson(words, stdout);
      return {
        status: child.exitCode ?? undefined,
        signal: child.signalCode === null ? undefined : String(child.signalCode),
        stdout,
        stderr: written.stderr,
      };
    },
  );
  return {
    processId: child.pid,
    stderr: () => written.stderr,
    said: async (text, limitMs = 600_000) => {
      const isThere = (): boolean =>
        typeof text === "string" ? written.stderr.includes(text) : text.test(written.stderr);
      const late = Promise.withResolvers<"late">();
      // A sleep that cannot be ended would keep the runner of the faults alive.
      const timer = setTimeout(() => late.resolve("late"), limitMs);
      const over = ended.then(() => "over" as const);
      try {
        while (!isThere()) {
          const outcome = await Promise.race([changed.current.promise, late.promise, over]);
          if (outcome !== undefined && !isThere())
            throw new Error(`${outcome}: "${String(text)}" was never said:\n${written.stderr}`);
        }
      } finally {
        clearTimeout(timer);
      }
    },
    interrupt: (signal) => child.kill(signal),
    ended,
  };
}

/** Whatever a program prints as JSON must be as the schema says. A program that was killed may print a part of it. */
function assertJson(words: readonly string[], stdout: string): void {
  const [command = ""] = words;
  if (!words.join(" ").includes("--output json") || !stdout.endsWith("}\n")) return;
  assertInSchema(command, JSON.parse(stdout));
}

/** Runs it to its end. */
export const run = (
  program: string,
  words: readonly string[],
  options: StartOptions,
): Promise<Ended> => start(program, words, options).ended;
