import { OwnError } from "../../errors.ts";
import { outside } from "../../outside-text.ts";
import { maskUrl, parseUrl } from "../mask-url.ts";

const mostRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** A redirect that isn't followed. The message is the reason: a sentence that begins in lower case, without secrets. */
export class RefusedRedirect extends OwnError {
  override readonly name = "RefusedRedirect";
}

/**
 * Requests a file and resolves with the answer, its body unread. It follows redirects itself, because the runtime would follow one from https to http
 * and back without a word. Sends the URL's user part, and only to the URL's own origin. Rejects with `RefusedRedirect`, or with the runtime's error.
 */
export async function requestFile(
  start: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const first = new URL(start);
  let url = first;
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    const bare = new URL(url);
    bare.username = "";
    bare.password = "";
    const login = url.origin === first.origin ? authorization(first) : {};
    // A compressed answer has another length than the file, and could not be resumed.
    const all = { ...headers, ...login, "accept-encoding": "identity" };
    const response = await fetch(bare.href, { headers: all, redirect: "manual", signal });
    const target = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || target === null) return response;
    await response.body?.cancel();
    url = redirected(url, target);
  }
  throw new RefusedRedirect(`the server redirects more than ${mostRedirects} times.`);
}

function redirected(from: URL, target: string): URL {
  const url = parseUrl(target, from);
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new RefusedRedirect(`the server redirects to an invalid URL: ${outside(maskUrl(target))}.`);
  if (from.protocol === "https:" && url.protocol === "http:")
    throw new RefusedRedirect(`the server redirects from https to the insecure ${outside(maskUrl(url))}.`);
  return url;
}

function authorization(url: URL): Record<string, string> {
  if (url.username === "" && url.password === "") return {};
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { authorization: `Basic ${Buffer.from(user).toString("base64")}` };
}
