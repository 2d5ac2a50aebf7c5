import { outside } from "../outside-text.ts";
import { maskUrl } from "./mask-url.ts";
import type { Environment } from "./runtime.ts";
import { variable } from "./variable.ts";

/** The proxy that the runtime sends requests for this URL through, and its variable, as people may see them; undefined if there is none. */
export function proxyOf(url: URL, environment: Environment): string | undefined {
  const names =
    url.protocol === "https:" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy", "HTTP_PROXY"];
  const name = names.find((each) => variable(environment, each) !== undefined);
  if (name === undefined) return undefined;
  const exceptions = variable(environment, "no_proxy") ?? variable(environment, "NO_PROXY") ?? "";
  if (exceptions.split(",").some((exception) => isMeant(url, exception.trim()))) return undefined;
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

function isMeant({ hostname, host }: URL, exception: string): boolean {
  if (exception === "*") return true;
  const name = exception.toLowerCase().replace(/^\*?\./, "");
  return name !== "" && [hostname, host].some((each) => each === name || each.endsWith(`.${name}`));
}
