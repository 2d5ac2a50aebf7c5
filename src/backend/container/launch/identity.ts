import { type TarFile, tarStream } from "../../../system/files/tar.ts";

/** Keys that a node gets before it starts, so that host key checking is strict from the very first connection. */
export interface Identity {
  /** OpenSSH's format, ed25519. */
  readonly hostKey: { readonly privateKey: string; readonly publicKey: string };
  /** An `authorized_keys` line. */
  readonly publicKey: string;
}

/** In a privileged container, systemd-sysctl would change the host's kernel settings at boot. Root's service manager would delay each login. */
const skippedUnits = ["systemd-sysctl.service", "user@0.service"];
const neverInContainers = "[Unit]\nConditionVirtualization=!container\n";

/**
 * Returns an archive to unpack at the node's root. It disables units that a node does without, and cloud-init, if the
 * image has it, because cloud-init would create other host keys.
 */
export async function identityArchive({ hostKey, publicKey }: Identity, nowMs: number): Promise<Uint8Array> {
  const files = [
    { name: "etc/ssh/ssh_host_ed25519_key", mode: 0o600, text: hostKey.privateKey },
    { name: "etc/ssh/ssh_host_ed25519_key.pub", mode: 0o644, text: `${hostKey.publicKey}\n` },
    { name: "root/.ssh/", mode: 0o700, text: "" },
    { name: "root/.ssh/authorized_keys", mode: 0o600, text: `${publicKey.trim()}\n` },
    { name: "etc/cloud/cloud-init.disabled", mode: 0o644, text: "" },
    ...skippedUnits.flatMap((unit) => [
      { name: `etc/systemd/system/${unit}.d/`, mode: 0o755, text: "" },
      { name: `etc/systemd/system/${unit}.d/cluster-e2e.conf`, mode: 0o644, text: neverInContainers },
    ]),
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
