import { outside } from "../../outside-text.ts";
import { maskUrl, parseUrl } from "../../system/mask-url.ts";
import type { ArtifactLocation } from "./artifact-location.ts";
import { answerFailure, artifactUnreachable, requestFailure } from "./artifact-failure.ts";

export type WebLocation = Extract<ArtifactLocation, { readonly kind: "url" }>;

/**
 * Requests an artifact and resolves with the answer (200, 206 or 416), its body unread. It follows redirects itself, so that the user part goes only
 * to the artifact's own origin, and refuses a redirect from https to http, because the artifact runs as root. Fails as `artifact-unreachable`.
 */
export async function requestArtifact(
  location: WebLocation,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const first = new URL(location.url);
  let url = first;
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    const response = await ask(
      url,
      { ...headers, ...(url.origin === first.origin ? authorization(first) : {}) },
      location,
      signal,
    );
    const target = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || target === null) return accepted(response, location);
    await response.body?.cancel();
    url = redirected(url, target, location);
  }
  throw artifactUnreachable(location.shown, `the server redirects more than ${mostRedirects} times.`, {});
}

const mostRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const acceptedStatuses: ReadonlySet<number> = new Set([200, 206, 416]);

async function ask(
  url: URL,
  headers: Record<string, string>,
  location: WebLocation,
  signal: AbortSignal,
): Promise<Response> {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  try {
    // A compressed answer has another length than the file, and could not be resumed.
    return await fetch(bare.href, {
      headers: { ...headers, "accept-encoding": "identity" },
      redirect: "manual",
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw requestFailure(location.shown, error);
  }
}

async function accepted(response: Response, location: WebLocation): Promise<Response> {
  if (acceptedStatuses.has(response.status)) return response;
  await response.body?.cancel();
  throw answerFailure(location.shown, response.status);
}

function redirected(from: URL, target: string, location: WebLocation): URL {
  const url = parseUrl(target, from);
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw artifactUnreachable(
      location.shown,
      `the server redirects to an invalid URL: ${outside(maskUrl(target))}.`,
      {},
    );
  }
  if (from.protocol === "https:" && url.protocol === "http:") {
    throw artifactUnreachable(
      location.shown,
      `the server redirects from https to the insecure ${outside(maskUrl(url))}.`,
      {
        hint: "Pass the URL that serves the file itself, or download the file and pass its path.",
      },
    );
  }
  return url;
}

function authorization(url: URL): Record<string, string> {
  if (url.username === "" && url.password === "") return {};
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { authorization: `Basic ${Buffer.from(user).toString("base64")}` };
}
