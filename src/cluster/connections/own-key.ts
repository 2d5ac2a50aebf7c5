import { readKeyPair } from "../../ssh/keys.ts";

/** Fails as `bad-usage` where this is no private key that a cluster could be opened with. */
export async function assertOwnKey(path: string): Promise<void> {
  await readKeyPair(path);
}
