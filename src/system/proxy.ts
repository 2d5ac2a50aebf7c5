import { BlockList, isIP } from "node:net";
import { outside } from "../outside-text.ts";
import { maskUrl } from "./mask-url.ts";
import type { Environment } from "./runtime.ts";
import { variable } from "./variable.ts";

/**
 * The proxy that the runtime sends requests for this URL through, and its variable, as people may
 * see them; undefined if there is none. The rules are those of Bun's fetch: a test compares them.
 */
export function proxyOf(url: URL, environment: Environment): string | undefined {
  const own =
    url.protocol === "https:" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy", "HTTP_PROXY"];
  const name = [...own, "all_proxy", "ALL_PROXY"].find(
    (each) => variable(environment, each) !== undefined,
  );
  if (name === undefined) return undefined;
  const exceptions = variable(environment, "no_proxy") ?? variable(environment, "NO_PROXY") ?? "";
  if (exceptions.split(/[,\s]+/).some((exception) => isMeant(url, exception))) return undefined;
  return `${outside(maskUrl(variable(environment, name) ?? ""))} (${name})`;
}

/** Likewise, for requests of this process: Bun's fetch reads the process's own variables, Node's reads none. */
export function usedProxy(url: URL): string | undefined {
  const { Bun: runtime } = globalThis as { readonly Bun?: { readonly env: Environment } };
  return runtime && proxyOf(url, runtime.env);
}

/** Names the proxy that may have answered in the server's place, as it can if the request isn't encrypted. */
export function throughProxy(url: URL): string {
  const proxy = url.protocol === "http:" ? usedProxy(url) : undefined;
  return proxy === undefined ? "" : `, through the proxy ${proxy}`;
}

/** An exception is a host, a domain or a range of addresses, and the first two may have a port. */
function isMeant({ protocol, hostname, port }: URL, exception: string): boolean {
  if (exception === "*") return true;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const [address, bits] = exception.split("/");
  if (bits !== undefined) return isInRange(host, address ?? "", Number(bits));
  const usedPort = port === "" ? { "https:": "443", "http:": "80" }[protocol] : port;
  const [, name = "", onlyPort = usedPort] = isIP(exception)
    ? [exception, exception]
    : (/^(?:\*?\.)?\[?(.*?)\]?\.?(?::(\d+))?$/.exec(exception) ?? []);
  if (name === "" || onlyPort !== usedPort) return false;
  const wanted = name.toLowerCase();
  return host === wanted || (isIP(host) === 0 && host.endsWith(`.${wanted}`));
}

function isInRange(host: string, address: string, bits: number): boolean {
  const family = (each: string) => (isIP(each) === 6 ? "ipv6" : "ipv4");
  const most = family(address) === "ipv6" ? 128 : 32;
  if (isIP(host) === 0 || isIP(host) !== isIP(address) || !(bits >= 0 && bits <= most))
    return false;
  const range = new BlockList();
  range.addSubnet(address, bits, family(address));
  return range.check(host, family(host));
}
