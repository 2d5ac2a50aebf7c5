import { type TarFile, tarStream } from "../../../system/files/tar.ts";

/** What a node has before it starts, so that the first connection is strict from its first byte. */
export interface Identity {
  /** OpenSSH's format, ed25519. For first contact only, which gives the node one that nobody else knows. */
  readonly hostKey: { readonly privateKey: string; readonly publicKey: string };
  /** An `authorized_keys` line. */
  readonly publicKey: string;
}

const variables = "etc/systemd/system/systemd-sysctl.service.d";

/**
 * An archive to be unpacked at the node's root. cloud-init, where the image has it, would make other host keys: it must not run. Nor may what
 * sets the kernel's variables to the image's taste at boot: in a privileged container they are the host's.
 */
export async function identityArchive({ hostKey, publicKey }: Identity, nowMs: number): Promise<Uint8Array> {
  const files = [
    { name: "etc/ssh/ssh_host_ed25519_key", mode: 0o600, text: hostKey.privateKey },
    { name: "etc/ssh/ssh_host_ed25519_key.pub", mode: 0o644, text: `${hostKey.publicKey}\n` },
    { name: "root/.ssh/", mode: 0o700, text: "" },
    { name: "root/.ssh/authorized_keys", mode: 0o600, text: `${publicKey.trim()}\n` },
    { name: "etc/cloud/cloud-init.disabled", mode: 0o644, text: "" },
    { name: `${variables}/`, mode: 0o755, text: "" },
    { name: `${variables}/cluster-e2e.conf`, mode: 0o644, text: "[Unit]\nConditionVirtualization=!container\n" },
  ];
  const entries = files.map(({ name, mode, text }): TarFile => {
    const bytes = Buffer.from(text);
    const contents = async function* (): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(bytes);
    };
    return { name, mode, modifiedMs: nowMs, sizeBytes: bytes.length, contents };
  });
  const parts: Uint8Array[] = [];
  for await (const part of tarStream(entries)) parts.push(part);
  return Buffer.concat(parts);
}
