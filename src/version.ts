/** Set by the build (`--define`); absent if the sources run directly. */
declare const CLUSTER_E2E_VERSION: string | undefined;

/** `<year>.<month>.<day>.<sequence>` for a release, `0.0.0+<commit>` for any other build. */
export const version: string =
  typeof CLUSTER_E2E_VERSION === "string" ? CLUSTER_E2E_VERSION : "0.0.0+source";
