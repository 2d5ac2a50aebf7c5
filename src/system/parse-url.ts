/** The URL that a text says, or undefined. What `URL.parse` does, which Node 20 lacks. */
export function parseUrl(text: string, from?: URL): URL | undefined {
  return URL.canParse(text, from?.href) ? new URL(text, from?.href) : undefined;
}
