/** Parses a URL; undefined if the text is not one. Replaces `URL.parse`, which Node 20 lacks. */
export function parseUrl(text: string, from?: URL): URL | undefined {
  return URL.canParse(text, from?.href) ? new URL(text, from?.href) : undefined;
}
