/** The release's install.sh: scripts/install.sh, told what it belongs to. */

interface InstallerFacts {
  readonly release: string;
  /** Without the tag: releases lie below it, each in a folder of its tag. */
  readonly downloadRoot: string;
  /** A public key as in `id_ed25519.pub`, without its comment; undefined where the release is not signed. */
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
