import type { Credentials } from "./signature.ts";

/** The key pairs that this cloud knows. They are valid only for a local cloud on loopback. */
export const accounts = {
  main: {
    accessKeyId: "AKIALOCALCLOUDMAIN01",
    secretAccessKey: "local-cloud/secret-of-the-main-account",
    accountId: "111122223333",
    expired: false,
  },
  /** Another account in the same regions. It can't see the first one's resources. */
  other: {
    accessKeyId: "AKIALOCALCLOUDOTHER1",
    secretAccessKey: "local-cloud/secret-of-the-other-account",
    accountId: "444455556666",
    expired: false,
  },
  /** A session that has expired. */
  expired: {
    accessKeyId: "ASIALOCALCLOUDEXPIRE",
    secretAccessKey: "local-cloud/secret-of-an-expired-session",
    sessionToken: "local-cloud-session-that-has-run-out",
    accountId: "111122223333",
    expired: true,
  },
} as const satisfies Readonly<Record<string, Credentials>>;
