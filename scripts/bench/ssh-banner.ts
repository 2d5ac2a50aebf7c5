/** When an SSH server is up: it speaks first. */
import { connect } from "node:net";

const pauseMs = 20;
/** Something else than the server may take the connection, and say nothing. */
const silenceMs = 1_000;

export async function awaitSsh(host: string, port: number, limitMs: number): Promise<void> {
  for (const deadline = Date.now() + limitMs; Date.now() < deadline; await Bun.sleep(pauseMs)) {
    if (await speaksSsh(host, port)) return;
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
