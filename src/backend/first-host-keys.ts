import type { NodeName } from "./contract.ts";
import { nodeReference } from "../model/cluster-record.ts";
import { generateKeyPair, type KeyPair } from "../ssh/keys.ts";

/** The host keys that the machines of one creation have when they boot. Containers keep them; other machines get another one at their first login. */
export interface FirstHostKeys {
  /** Returns the same pair for the same node every time. */
  of(node: NodeName): KeyPair;
}

/** No node can impersonate another, because it never sees the other's first key. */
export const hostKeyPerNode = (): FirstHostKeys => keysByName(nodeReference);

/** For machines that share their user data with the others of their role. */
export const hostKeyPerRole = (): FirstHostKeys => keysByName(({ role }) => role);

function keysByName(nameOf: (node: NodeName) => string): FirstHostKeys {
  const pairs = new Map<string, KeyPair>();
  return {
    of: (node) => {
      const name = nameOf(node);
      const pair = pairs.get(name) ?? generateKeyPair("first-contact");
      pairs.set(name, pair);
      return pair;
    },
  };
}
