/** Creates the release's install.sh from scripts/install.sh and the values of the release. */

interface InstallerFacts {
  readonly release: string;
  /** The URL without the tag. Each release is in a folder below it, named after its tag. */
  readonly downloadRoot: string;
  /** A public key as in `id_ed25519.pub`, without its comment; undefined if the release is not signed. */
  readonly signer: string | undefined;
  /** The lines of SHA256SUMS for all other files. */
  readonly sums: string;
}

export function installer(
  template: string,
  { release, downloadRoot, signer, sums }: InstallerFacts,
): string {
  const values = { release, download_root: downloadRoot, signer: signer ?? "", sums };
  return Object.entries(values).reduce((text, [name, value]) => {
    const line = `\n${name}=''\n`;
    if (!text.includes(line)) throw new Error(`scripts/install.sh lacks the line ${line.trim()}`);
    if (value.includes("'")) throw new Error(`${name} cannot be written into a script: ${value}`);
    return text.replace(line, () => `\n${name}='${value}'\n`);
  }, template);
}
