/** When an SSH server is up: it speaks first. */
import { connect } from "node:net";

const shortestPauseMs = 20;
/** As a part of the time waited so far. Asking an emulated machine costs it time. */
const pausePart = 0.02;
/** Something else than the server may take the connection, and say nothing. */
const silenceMs = 1_000;

export async function awaitSsh(host: string, port: number, limitMs: number): Promise<void> {
  const startMs = Date.now();
  while (Date.now() < startMs + limitMs) {
    if (await speaksSsh(host, port)) return;
    await Bun.sleep(Math.max(shortestPauseMs, pausePart * (Date.now() - startMs)));
  }
  throw new Error(`no SSH at ${host} port ${port} after ${limitMs / 1000} s`);
}

async function speaksSsh(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(silenceMs, () => resolve(false));
      socket.once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
      socket.once("data", (chunk) => resolve(chunk.toString("latin1").startsWith("SSH-")));
    });
  } finally {
    socket.destroy();
  }
}
