/** Set by the build (`--define`); absent when the sources run as they are. */
declare const CLUSTER_E2E_VERSION: string | undefined;

/** `<year>.<month>.<day>.<sequence>` of a release, `0.0.0+<commit>` of any other build. */
export const version: string = typeof CLUSTER_E2E_VERSION === "string" ? CLUSTER_E2E_VERSION : "0.0.0+source";
