/** Signatures of a release's checksums, by OpenSSH's own tool. */
import { join } from "node:path";
import { output } from "./command.ts";

/** What install.sh verifies with; a signature made for anything else is none for a release. */
const namespace = "cluster-e2e-release";

/** Signs `SHA256SUMS` in the folder as `SHA256SUMS.sig`, with a private key file, or a public one whose private half an agent holds. */
export async function signSums(folder: string, keyPath: string): Promise<void> {
  const argv = [
    "ssh-keygen",
    "-Y",
    "sign",
    "-f",
    keyPath,
    "-n",
    namespace,
    join(folder, "SHA256SUMS"),
  ];
  await output(argv, { cwd: folder });
}

/** Type and key of the public half, without its comment. */
export async function publicKey(keyPath: string): Promise<string> {
  const companion = keyPath.endsWith(".pub") ? keyPath : `${keyPath}.pub`;
  const isThere = await Bun.file(companion).exists();
  const text = isThere
    ? await Bun.file(companion).text()
    : await output(["ssh-keygen", "-y", "-f", keyPath], { cwd: "/" });
  const [type, key] = text.trim().split(/\s+/);
  if (type === undefined || key === undefined)
    throw new Error(`${companion} does not contain a public key`);
  return `${type} ${key}`;
}

/** A line for `ssh-keygen -Y verify -f`. */
export const allowedSigner = (key: string): string =>
  `cluster-e2e namespaces="${namespace}" ${key}\n`;
