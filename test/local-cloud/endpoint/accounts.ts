import { randomBytes } from "node:crypto";
import type { Credentials } from "./signature.ts";

const keyId = (prefix: string): string =>
  prefix +
  [...randomBytes(16)].map((byte) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[byte % 32]).join("");

const secret = (): string => randomBytes(30).toString("base64");

/** The key pairs that this cloud knows, new in each process: every account of this computer can reach loopback. */
export const accounts = {
  main: {
    accessKeyId: keyId("AKIA"),
    secretAccessKey: secret(),
    accountId: "111122223333",
    expired: false,
  },
  /** Another account in the same regions. It can't see the first one's resources. */
  other: {
    accessKeyId: keyId("AKIA"),
    secretAccessKey: secret(),
    accountId: "444455556666",
    expired: false,
  },
  /** A session that has expired. */
  expired: {
    accessKeyId: keyId("ASIA"),
    secretAccessKey: secret(),
    sessionToken: secret(),
    accountId: "111122223333",
    expired: true,
  },
} as const satisfies Readonly<Record<string, Credentials>>;
