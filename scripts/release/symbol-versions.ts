/** The oldest C library that our Linux executables must still start with. */
const newest = [2, 17] as const;

/**
 * Versions of the C library's symbols, named in a Linux executable, that glibc 2.17 lacks. Looks at every such name in the file, so
 * that it can only find too many.
 */
export function tooNewSymbolVersions(file: Buffer): readonly string[] {
  const names = new Set(file.toString("latin1").match(/GLIBC_\d+\.\d+(?:\.\d+)?/g));
  return [...names].filter((name) => {
    const [major = 0, minor = 0] = name.slice("GLIBC_".length).split(".").map(Number);
    return major > newest[0] || (major === newest[0] && minor > newest[1]);
  });
}
