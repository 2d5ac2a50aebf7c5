import { outside } from "../../../outside-text.ts";
import { maskUrl } from "../../../system/mask-url.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";

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

function isMeant({ hostname, host }: URL, exception: string): boolean {
  if (exception === "*") return true;
  const name = exception.toLowerCase().replace(/^\*?\./, "");
  return name !== "" && [hostname, host].some((each) => each === name || each.endsWith(`.${name}`));
}
