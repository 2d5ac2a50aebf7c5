import { createConnection } from "node:net";
import type { Socket } from "node:net";

export interface SocketTarget {
  readonly host: string;
  readonly port: number;
  /** A machine that isn't up yet swallows packets: better to ask again soon than to wait for TCP's own, ever longer pauses. */
  readonly connectTimeoutMs: number;
}

/** A TCP connection. Rejects with the system's error (`code`), with `ETIMEDOUT` as its code after the time, or with the signal's reason. */
export function openSocket({ host, port, connectTimeoutMs }: SocketTarget, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = createConnection({ host, port, noDelay: true });
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      socket.removeAllListeners();
      act();
    };
    const fail = (reason: unknown): void =>
      settle(() => {
        // An error that comes late must find a listener, or it ends the program.
        socket.on("error", () => {}).destroy();
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
