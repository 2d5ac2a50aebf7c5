/** The algorithms that an SSH server offers for one part of the encryption, in its order of preference. */
export interface ServerOffer {
  readonly part: OfferedPart;
  readonly names: readonly string[];
}

type OfferedPart = "key exchange" | "host key" | "cipher" | "MAC";

/** The names in the debug lines of ssh2 1.17. Nothing else in its interface tells what a server offers if no algorithm matches. */
const parts: Readonly<Record<string, OfferedPart>> = {
  "KEX method": "key exchange",
  "Host key format": "host key",
  "C->S cipher": "cipher",
  "S->C cipher": "cipher",
  "C->S MAC": "MAC",
  "S->C MAC": "MAC",
};
const mostNames = 8;

/** Parses one of ssh2's debug lines; undefined if it isn't about an offer. ssh2 gives up right after the line without a match. */
export function readServerOffer(debugLine: string): ServerOffer | undefined {
  const [, name = "", list = ""] = /^Handshake: \(remote\) ([^:]+): (.*)$/.exec(debugLine) ?? [];
  const part = parts[name];
  if (part === undefined) return undefined;
  // The names come from outside. Those in https://www.rfc-editor.org/rfc/rfc4251#section-6 are short and printable.
  const names = list.split(",").filter((each) => /^[\w@.+-]{1,64}$/.test(each) && !isNoAlgorithm(each));
  return { part, names: names.slice(0, mostNames) };
}

/** Extensions that servers list among their key exchange methods. */
const isNoAlgorithm = (name: string): boolean => /^(?:ext-info-|kex-strict-)/.test(name);
