/**
 * A URL that is safe to show. Scheme, host and path stay. User part, query and fragment are masked, because signed URLs
 * carry their secret there. A text that is not a URL is masked by pattern.
 */
export function maskUrl(url: string | URL): string {
  const parsed = URL.parse(String(url));
  if (parsed === null || parsed.host === "") return maskByLook(String(url));
  const user = parsed.username === "" && parsed.password === "" ? "" : "***@";
  const query = parsed.search === "" ? "" : "?***";
  const fragment = parsed.hash === "" ? "" : "#***";
  return `${parsed.protocol}//${user}${parsed.host}${parsed.pathname}${query}${fragment}`;
}

/**
 * The parts of a URL that must not be printed, for `Progress.hide`: the whole URL if any part of it is secret, its
 * query, the longer query values, and its password. The user name counts only if no password follows, because then it
 * is a token.
 */
export function urlSecrets(url: string): readonly string[] {
  const parsed = URL.parse(url);
  if (parsed === null || maskUrl(parsed) === parsed.href) return [];
  const user = parsed.password === "" ? parsed.username : parsed.password;
  const values = [...parsed.searchParams.values()].filter(
    (value) => value.length >= shortestSecret,
  );
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

/** Shorter query values, such as a version number, reveal nothing, and hiding them would mask half of the output. */
const shortestSecret = 8;

/** A proxy may be named without its scheme: `me:secret@proxy.test:3128`. */
const userWithPassword = /^[^/?#:@]*:[^/?#]+@/;

function maskByLook(text: string): string {
  const [start, end] = [text.indexOf("//"), text.lastIndexOf("@")];
  const withoutUser =
    start >= 0 && end > start
      ? `${text.slice(0, start)}//***${text.slice(end)}`
      : text.replace(userWithPassword, "***@");
  const query = withoutUser.search(/[?#]/);
  return query < 0 ? withoutUser : `${withoutUser.slice(0, query)}?***`;
}

/** Decodes a part of a URL. Returns it unchanged if a `%` in it encodes nothing. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
