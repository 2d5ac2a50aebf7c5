const pattern = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/;

/** What is wrong with a cluster id, or `undefined`. */
export function clusterIdProblem(text: string): string | undefined {
  if (pattern.test(text)) return undefined;
  return `"${text}" is no cluster id: 1 to 63 letters, digits, "_", "." and "-", beginning with a letter or digit`;
}
