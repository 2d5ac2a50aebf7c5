import { ClusterError } from "../../errors.ts";

/**
 * Options that the library calls otherwise than the commands declare them, or doesn't have. The code below both names options as the commands do, in
 * backquotes; see cli/options/flag-names.ts for the command line.
 */
const libraryNames: ReadonlyMap<string, string> = new Map([
  ["extraConfig", "`clusterConfig`"],
  ["licenseKey", "license_key_contents in `clusterConfig`"],
  ["noTestEnv", "--no-test-env"],
  ["securityMode", "security in `clusterConfig`"],
  ["sshUser", "the `user` of `image`"],
  ["timeout", "`timeoutMs`"],
  ["workspaceDir", "TMPDIR"],
]);

/** Replaces the commands' names of options in a text with those of the library. */
export const libraryWords = (text: string): string =>
  text.replaceAll(/`(\w+)`/g, (found, name: string) => libraryNames.get(name) ?? found);

/** Runs an operation of the library. Its errors name options as the library does. */
export async function inLibraryWords<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw withLibraryWords(error);
  }
}

export function withLibraryWords(error: unknown): unknown {
  if (!(error instanceof ClusterError)) return error;
  const { id, transient, cause } = error;
  const message = libraryWords(error.message);
  const hint = error.hint === undefined ? undefined : libraryWords(error.hint);
  if (message === error.message && hint === error.hint) return error;
  const { problems, ...others } = error.facts;
  const facts = Array.isArray(problems) ? { ...others, problems: problems.map(String).map(libraryWords) } : others;
  return new ClusterError(id, message, { ...(hint !== undefined && { hint }), facts, transient, cause });
}
