import { createServer } from "node:net";
import { serveOnLoopback } from "../../../support/loopback-server.ts";

/** The beginning of an artifact, followed by bytes that differ everywhere, so that a misplaced part is detected. */
export function artifactBytes(
  sizeBytes: number,
  head = "#!/bin/bash\n# variant: oss\n",
): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(sizeBytes);
  for (let index = 0; index < sizeBytes; index += 1)
    bytes[index] = (index * 31 + (index >> 8) * 7) & 0xff;
  bytes.set(new TextEncoder().encode(head));
  return bytes;
}

export interface WebServer extends AsyncDisposable {
  readonly origin: string;
  readonly requests: { readonly method: string; readonly url: string; readonly headers: Headers }[];
}

/** A web server on loopback that records its requests. */
export function webServer(
  answer: (request: Request, count: number) => Response | Promise<Response>,
  tls?: Bun.TLSOptions,
): WebServer {
  const requests: WebServer["requests"] = [];
  const record = (request: Request): Response | Promise<Response> => {
    const { method, url } = request;
    // Copied, because Bun drops a request's headers after the response.
    return answer(request, requests.push({ method, url, headers: new Headers(request.headers) }));
  };
  const server = serveOnLoopback(record, tls && { tls });
  return {
    origin: `${tls === undefined ? "http" : "https"}://127.0.0.1:${server.port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      await server.stop(true);
    },
  };
}

/** Serves byte ranges, like real file servers. */
export function rangeAnswer(
  request: Request,
  bytes: Buffer<ArrayBuffer>,
  headers: Record<string, string>,
): Response {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "") ?? [];
  const validator = request.headers.get("if-range");
  if (first === undefined || (validator !== null && !Object.values(headers).includes(validator)))
    return new Response(bytes, { headers });
  if (Number(first) >= bytes.length) return new Response(null, { status: 416 });
  const end = last === "" ? bytes.length : Math.min(Number(last) + 1, bytes.length);
  const range = `bytes ${first}-${end - 1}/${bytes.length}`;
  return new Response(bytes.subarray(Number(first), end), {
    status: 206,
    headers: { ...headers, "content-range": range },
  });
}

export interface RawServer extends AsyncDisposable {
  readonly origin: string;
  /** The head of each request. */
  readonly requests: string[];
}

/**
 * A server that says just what it is told to, and ends the connection a moment later: for answers that no web server would give. The
 * moment is for the client, which forgets what it hasn't handed on when a connection breaks.
 */
export async function rawServer(
  answer: (request: string, count: number) => Uint8Array | string,
): Promise<RawServer> {
  const requests: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    let request = "";
    const isWhole = (): boolean => request.includes("\r\n\r\n");
    socket.on("data", (data) => {
      if (isWhole()) return;
      // A busy client may send its head in parts.
      request += data.toString("latin1");
      if (!isWhole()) return;
      socket.write(answer(request, requests.push(request)));
      setTimeout(() => socket.end(), 30);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
}

/** Returns the head of a response with the whole file or the requested rest, and at most `sentBytes` of its body. */
export function cutAnswer(
  bytes: Uint8Array,
  sentBytes: number,
  { headers = "", request = "" } = {},
): Uint8Array {
  const offset = Number(/^range: bytes=(\d+)-/im.exec(request)?.[1] ?? 0);
  const status = offset === 0 ? "200 OK" : "206 Partial Content";
  const range =
    offset === 0 ? "" : `Content-Range: bytes ${offset}-${bytes.length - 1}/${bytes.length}\r\n`;
  const head = `HTTP/1.1 ${status}\r\nContent-Length: ${bytes.length - offset}\r\n${range}${headers}Connection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes.subarray(offset, offset + sentBytes)]);
}
