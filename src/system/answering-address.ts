import { lookup } from "node:dns/promises";
import { connect, isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** As RFC 8305 recommends: how long an IPv6 address has before the IPv4 address is tried too. */
const headStartMs = 250;
const limitMs = 5_000;

/**
 * Returns the IPv4 address of a host whose IPv6 address is announced but doesn't answer; undefined
 * if the host can be used as it is. Bun 1.4.4 connects to the first address alone, which takes
 * minutes to fail where a network swallows IPv6. Node needs no help: it tries both.
 */
export async function answeringAddress(url: URL, signal: AbortSignal): Promise<string | undefined> {
  if (!("Bun" in globalThis) || isIP(url.hostname.replace(/^\[|\]$/g, "")) !== 0) return undefined;
  const found = await lookup(url.hostname, { all: true }).catch(() => []);
  const [six, four] = ([6, 4] as const).map(
    (family) => found.find((each) => each.family === family)?.address,
  );
  if (six === undefined || four === undefined) return undefined;
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  return await firstToAnswer(
    { six, four },
    async (host, inner) => tryToConnect(host, port, inner),
    signal,
  );
}

interface AtAddress {
  readonly href: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly own: typeof quiet & {
    readonly tls?: { readonly serverName: string };
    readonly proxy?: false;
  };
}

/**
 * An option of Bun's fetch. With the variable BUN_CONFIG_VERBOSE_FETCH, it would print headers,
 * which contain tokens.
 */
const quiet = { verbose: false } as const;

/** How to fetch a URL from an address of its host, without a proxy; from its host if there is none. */
export function atAddress(url: URL, address: string | undefined): AtAddress {
  if (address === undefined) return { href: url.href, headers: {}, own: quiet };
  const other = new URL(url);
  other.hostname = address;
  // Options of Bun's fetch. It would look for the address in NO_PROXY, which has the name.
  const own = { ...quiet, tls: { serverName: url.hostname }, proxy: false } as const;
  return { href: other.href, headers: { host: url.host }, own };
}

/** Undefined if the IPv6 address answers first, or none answers. */
export async function firstToAnswer(
  { six, four }: { readonly six: string; readonly four: string },
  tryOne: (host: string, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<string | undefined> {
  signal.throwIfAborted();
  const over = new AbortController();
  const inner = AbortSignal.any([signal, over.signal, AbortSignal.timeout(limitMs)]);
  const failedAtOnce = Promise.withResolvers<void>();
  const viaSix = tryOne(six, inner).then(() => undefined);
  viaSix.catch(() => failedAtOnce.resolve());
  const viaFour = async (): Promise<string> => {
    await Promise.race([delay(headStartMs, undefined, { signal: inner }), failedAtOnce.promise]);
    await tryOne(four, inner);
    return four;
  };
  try {
    return await Promise.any([viaSix, viaFour()]);
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    over.abort();
  }
}

async function tryToConnect(host: string, port: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host, port });
    const end = (): void => {
      socket.destroy();
      reject(new Error("given up"));
    };
    signal.addEventListener("abort", end, { once: true });
    socket.once("error", reject).once("connect", () => {
      socket.destroy();
      resolve();
    });
  });
}
