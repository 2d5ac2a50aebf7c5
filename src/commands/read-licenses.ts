/** The licenses of this program and everything it contains, written by scripts/notices.ts. */
export async function readLicenses(): Promise<string> {
  // As a file of its own: text within the code is stored three times.
  const { default: path } = await import("./third-party-notices.txt", { with: { type: "file" } });
  return await Bun.file(path).text();
}
