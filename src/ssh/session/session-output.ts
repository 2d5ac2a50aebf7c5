import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import { kindOf, openOutput, reopen } from "../../system/processes/output.ts";

/** Where ssh writes one of the command's streams: this program's own stream, or an open file. */
export type OutputTarget = "inherit" | number;

/** What a running ssh has written, on its way to this program's streams. */
export interface SessionOutput {
  /** Resolves when it has arrived; never rejects. */
  readonly arrived: Promise<void>;
  /** Drops what a slow reader has not taken yet. */
  abandon(): void;
}

interface Route {
  /** Of this program. */
  readonly descriptor: number;
  readonly stdio: OutputTarget | "pipe";
  readonly isReopened: boolean;
}

type Stdio = Route["stdio"];

/**
 * Starts ssh so that it doesn't change this program's stdout and stderr for others. It makes what
 * isn't a terminal non-blocking, for all who share it, and leaves it so when it is killed. (OpenSSH
 * 9.2, `ssh_session2_open` in ssh.c.) So it gets a pipe once more, with flags of its own; what
 * can't be opened again, such as a file or a socket, is written by this program.
 */
export function startWithOutput(
  targets: readonly [stdout: OutputTarget, stderr: OutputTarget],
  start: (stdio: readonly [stdout: Stdio, stderr: Stdio]) => Bun.Subprocess,
) {
  const [stdout, stderr] = [routeTo(targets[0], 1), routeTo(targets[1], 2)];
  const child = start([stdout.stdio, stderr.stdio]);
  for (const { stdio, isReopened } of [stdout, stderr])
    if (isReopened && typeof stdio === "number") closeSync(stdio);
  const passing = [
    ...(child.stdout instanceof ReadableStream ? [pass(child.stdout, stdout.descriptor)] : []),
    ...(child.stderr instanceof ReadableStream ? [pass(child.stderr, stderr.descriptor)] : []),
  ];
  const abandon = (): void => {
    for (const each of passing) each.abandon();
  };
  return {
    child,
    output: { arrived: Promise.all(passing.map((each) => each.arrived)).then(() => {}), abandon },
  };
}

function routeTo(target: OutputTarget, descriptor: number): Route {
  if (target !== "inherit" || isatty(descriptor))
    return { descriptor, stdio: target, isReopened: false };
  const own = kindOf(descriptor) === "pipe" ? reopen(descriptor) : undefined;
  return { descriptor, stdio: own ?? "pipe", isReopened: own !== undefined };
}

function pass(source: ReadableStream<Uint8Array>, descriptor: number): SessionOutput {
  const abandoned = Promise.withResolvers<void>();
  const carry = async (): Promise<void> => {
    using output = await openOutput(descriptor);
    const write = async (): Promise<void> => {
      for await (const chunk of source) await output.write(chunk);
    };
    // If the reader has gone, leaving the loop closes the pipe, as ssh would see it without us.
    await Promise.race([write().catch(() => {}), abandoned.promise]);
  };
  return { arrived: carry(), abandon: () => abandoned.resolve() };
}
