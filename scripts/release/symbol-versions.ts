/** The oldest C library that our Linux executables support. */
const newest = [2, 17] as const;

/**
 * Finds versions of the C library's symbols in a Linux executable that glibc 2.17 lacks. Checks every such name in the file, so
 * it may report too many, but never too few.
 */
export function tooNewSymbolVersions(file: Buffer): readonly string[] {
  const names = new Set(file.toString("latin1").match(/GLIBC_\d+\.\d+(?:\.\d+)?/g));
  return [...names].filter((name) => {
    const [major = 0, minor = 0] = name.slice("GLIBC_".length).split(".").map(Number);
    return major > newest[0] || (major === newest[0] && minor > newest[1]);
  });
}
