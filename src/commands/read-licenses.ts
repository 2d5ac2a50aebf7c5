/** The licenses of this program and everything it contains, written by scripts/notices.ts. */
export async function readLicenses(): Promise<string> {
  const { default: text } = await import("./third-party-notices.txt", { with: { type: "text" } });
  return text;
}
