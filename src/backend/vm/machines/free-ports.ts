import { createServer, type Server } from "node:net";

/** Finds this many different TCP ports of 127.0.0.1 that nobody listens on now. Another program may take them before the caller does. */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new TypeError("A listening server has no port");
    return address.port;
  });
  await Promise.all(servers.map(close));
  return ports;
}

async function listen(): Promise<Server> {
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject).listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  return server;
}

async function close(server: Server): Promise<void> {
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
}
