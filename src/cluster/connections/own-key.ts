import { readKeyPair } from "../../ssh/keys.ts";

/** Fails as `bad-usage` if the file is not a private key that can open a cluster. */
export async function assertOwnKey(path: string): Promise<void> {
  await readKeyPair(path);
}
