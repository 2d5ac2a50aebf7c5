type Answer = (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>;

interface LoopbackOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** Of loopback. Default: 127.0.0.1. */
  readonly address?: string;
  /** The host that clients name, or `any` for a proxy. Default: the address. */
  readonly host?: string;
  readonly tls?: Bun.TLSOptions;
}

/**
 * Serves on loopback, which every account of this computer can reach, and every page in its browsers. A request that comes from a
 * page, or that names another host (so could a page read the answer: DNS rebinding), gets status 403. A server that does something
 * for its clients must also ask for a secret, because other accounts can name the right host.
 */
export function serveOnLoopback(
  answer: Answer,
  options: LoopbackOptions = {},
): Bun.Server<undefined> {
  const { port = 0, address = "127.0.0.1", tls } = options;
  const { host = address.includes(":") ? `[${address}]` : address } = options;
  return Bun.serve({
    hostname: address,
    port,
    idleTimeout: 0,
    ...(tls !== undefined && { tls }),
    fetch: (request, server) => {
      const expected = server.port === 80 ? host : `${host}:${server.port}`;
      const isExpected = host === "any" || request.headers.get("host") === expected;
      if (isExpected && !request.headers.has("origin")) return answer(request, server);
      return new Response("This server is only for the process that opened it.\n", { status: 403 });
    },
  });
}
