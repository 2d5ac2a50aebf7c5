/**
 * Downloads from `files.example`, whose IPv6 address swallows everything, and from the same host through a proxy. Prints
 * the answers as JSON. Usage: bun swallowed-ipv6-program.ts KEY CERTIFICATE
 */
import { readFileSync } from "node:fs";
import { type RequestListener, type Server, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { requestFile } from "../../../src/system/network.ts";

const [key = "", certificate = ""] = process.argv.slice(2);
const hosts: string[] = [];
const answer: RequestListener = ({ headers }, response) => {
  hosts.push(headers.host ?? "");
  response.end("the file");
};
const plain = await listen(createServer(answer));
const tls = { key: readFileSync(key), cert: readFileSync(certificate) };
const encrypted = await listen(createTlsServer(tls, answer));
const proxy = await listen(createServer((_, response) => response.end("through the proxy")));

const read = async (url: string): Promise<string> =>
  (await requestFile(url, {}, AbortSignal.timeout(60_000))).text();
const names = [plain, encrypted].map(({ port }) => `files.example:${port}`);
const direct = [await read(`http://${names[0]}/`), await read(`https://${names[1]}/`)];
process.env["http_proxy"] = `http://127.0.0.1:${proxy.port}`;
const proxied = await read(`http://${names[0]}/`);
console.log(JSON.stringify({ direct, proxied, areNamed: hosts.join() === names.join() }));
for (const { server } of [plain, encrypted, proxy]) {
  server.close();
  server.closeAllConnections();
}

async function listen(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
