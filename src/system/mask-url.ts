import { parseUrl } from "./parse-url.ts";

/**
 * A URL for people's eyes: scheme, host and path stay, user part, query and fragment are masked, since signed addresses carry their
 * secret there. A text that is no URL is masked by its look.
 */
export function maskUrl(url: string | URL): string {
  const parsed = parseUrl(String(url));
  if (parsed === undefined || parsed.host === "") return maskByLook(String(url));
  const user = parsed.username === "" && parsed.password === "" ? "" : "***@";
  const query = parsed.search === "" ? "" : "?***";
  const fragment = parsed.hash === "" ? "" : "#***";
  return `${parsed.protocol}//${user}${parsed.host}${parsed.pathname}${query}${fragment}`;
}

/**
 * The parts of a URL that must not be printed, for `Progress.hide`: the whole URL where anything of it is secret, its query, the query's
 * longer values, its password; its user name only where no password follows (then it is a token).
 */
export function urlSecrets(url: string): readonly string[] {
  const parsed = parseUrl(url);
  if (parsed === undefined || maskUrl(parsed) === parsed.href) return [];
  const user = parsed.password === "" ? parsed.username : parsed.password;
  const values = [...parsed.searchParams.values()].filter((value) => value.length >= shortestSecret);
  const secrets = [
    url,
    parsed.href,
    parsed.search.slice(1),
    user,
    decoded(user),
    ...values,
    ...values.map(encodeURIComponent),
  ];
  return [...new Set(secrets)].filter((secret) => secret !== "");
}

/** Shorter query values, such as a version number, say nothing and would mask half of what is printed. */
const shortestSecret = 8;

const maskByLook = (text: string): string => text.replace(/\/\/.*@/s, "//***@").replace(/[?#].*$/s, "?***");

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
