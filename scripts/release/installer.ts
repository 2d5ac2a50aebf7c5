/** Creates the release's install.sh from scripts/install.sh and the values of the release. */

interface InstallerFacts {
  readonly release: string;
  /** The URL without the tag. Each release is in a folder below it, named after its tag. */
  readonly downloadRoot: string;
  /** A public key as in `id_ed25519.pub`, without its comment; undefined if the release is not signed. */
  readonly signer: string | undefined;
}

export function installer(template: string, { release, downloadRoot, signer }: InstallerFacts): string {
  const values = { release, download_root: downloadRoot, signer: signer ?? "" };
  return Object.entries(values).reduce((text, [name, value]) => {
    const line = `\n${name}=''\n`;
    if (!text.includes(line)) throw new Error(`scripts/install.sh lacks the line ${line.trim()}`);
    if (/['\n]/.test(value)) throw new Error(`${name} cannot be written into a script: ${value}`);
    return text.replace(line, () => `\n${name}='${value}'\n`);
  }, template);
}
