/** A web server that serves one artifact and records each request. */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";

export interface ArtifactServer extends AsyncDisposable {
  readonly url: string;
  /** In the order of asking. */
  readonly requests: readonly ArtifactRequest[];
}

interface ArtifactRequest {
  /** The asker's address. */
  readonly from: string;
  /** `bytes=0-16383`; undefined: all of it was asked for. */
  readonly range: string | undefined;
}

/**
 * Serves at an address of this machine. Whoever asks for more than `cutAfterBytes` gets so many, then the connection
 * breaks.
 */
export async function serveArtifact(
  path: string,
  host: string,
  cutAfterBytes = Number.POSITIVE_INFINITY,
): Promise<ArtifactServer> {
  const bytes = Buffer.from(await Bun.file(path).bytes());
  const requests: ArtifactRequest[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { range } = request.headers;
    requests.push({ from: (request.socket.remoteAddress ?? "").replace(/^::ffff:/, ""), range });
    const [, first = "0", last = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
    const end = last === "" ? bytes.length : Math.min(Number(last) + 1, bytes.length);
    const part = bytes.subarray(Number(first), end);
    response.writeHead(range === undefined ? 200 : 206, {
      "content-length": part.length,
      ...(range !== undefined && { "content-range": `bytes ${first}-${end - 1}/${bytes.length}` }),
    });
    if (part.length <= cutAfterBytes) return void response.end(part);
    response.write(part.subarray(0, cutAfterBytes), () =>
      setTimeout(() => request.socket.destroy(), 50),
    );
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new Error("the artifact's server has no port");
  return {
    url: `http://${host}:${address.port}/generate_config.sh`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
