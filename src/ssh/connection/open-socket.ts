import { createConnection } from "node:net";
import type { Socket } from "node:net";

export interface SocketTarget {
  readonly host: string;
  readonly port: number;
  /** A machine that isn't up yet drops packets, so retrying soon is better than waiting for TCP's ever longer pauses. */
  readonly connectTimeoutMs: number;
}

/** Opens a TCP connection. Rejects with the system's error (`code`), with the code `ETIMEDOUT` after the time limit, or with the signal's reason. */
export function openSocket({ host, port, connectTimeoutMs }: SocketTarget, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = createConnection({ host, port, noDelay: true });
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // A late error needs a listener, or it ends the program.
      socket.removeAllListeners().on("error", () => {});
      act();
    };
    const fail = (reason: unknown): void =>
      settle(() => {
        socket.destroy();
        reject(reason);
      });
    const onAbort = (): void => fail(signal.reason);
    const timer = setTimeout(
      () => fail(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })),
      connectTimeoutMs,
    );
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("error", fail).once("connect", () => settle(() => resolve(socket)));
  });
}
