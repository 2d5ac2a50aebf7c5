/** What an SSH server can use for one part of the encryption, in its own order. */
export interface ServerOffer {
  readonly part: OfferedPart;
  readonly names: readonly string[];
}

type OfferedPart = "key exchange" | "host key" | "cipher" | "MAC";

/** As ssh2 1.17 calls them in its debug lines: nothing else of its interface tells what a server offers whom it can't agree with. */
const parts: Readonly<Record<string, OfferedPart>> = {
  "KEX method": "key exchange",
  "Host key format": "host key",
  "C->S cipher": "cipher",
  "S->C cipher": "cipher",
  "C->S MAC": "MAC",
  "S->C MAC": "MAC",
};
const mostNames = 8;

/** Reads one of ssh2's debug lines; undefined where it isn't about an offer. ssh2 gives up right after the line that nothing matches. */
export function readServerOffer(debugLine: string): ServerOffer | undefined {
  const [, name = "", list = ""] = /^Handshake: \(remote\) ([^:]+): (.*)$/.exec(debugLine) ?? [];
  const part = parts[name];
  if (part === undefined) return undefined;
  // The names come from outside. Those of https://www.rfc-editor.org/rfc/rfc4251#section-6 are short and printable.
  const names = list.split(",").filter((each) => /^[\w@.+-]{1,64}$/.test(each) && !isNoAlgorithm(each));
  return { part, names: names.slice(0, mostNames) };
}

/** Extensions that servers announce among their ways of exchanging keys. */
const isNoAlgorithm = (name: string): boolean => /^(?:ext-info-|kex-strict-)/.test(name);
