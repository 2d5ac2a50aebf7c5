import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { TooLong } from "../../../system/files/read-text.ts";

interface DirectRequest {
  readonly url: URL;
  readonly method: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** These answers are an address, or a few facts. */
const mostBytes = 64 * 1024;

/**
 * Sends a request without a proxy. Through a proxy, the answers (this machine's own address, its own metadata) would be the proxy's. Bun's fetch
 * always reads the proxy variables; its node:http doesn't.
 */
export async function requestDirectly(
  request: DirectRequest,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)]);
  const send = request.url.protocol === "https:" ? httpsRequest : httpRequest;
  return await new Promise((resolve, reject) => {
    const options = { method: request.method, headers: request.headers, agent: false, signal: bounded } as const;
    const sent = send(request.url, options, (response) => {
      const chunks: Buffer[] = [];
      const received = { bytes: 0 };
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        received.bytes += chunk.length;
        if (received.bytes > mostBytes) sent.destroy(new TooLong(mostBytes));
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end();
  });
}
