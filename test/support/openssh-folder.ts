import { mkdir, writeFile } from "node:fs/promises";
import { createKnownHosts } from "../../src/ssh/openssh-files.ts";
import { type CreationFiles, creationFiles } from "../../src/store/creation-folder.ts";
import type { OpensshServer } from "./openssh-server.ts";
import { wireKey } from "./ssh-options.ts";

/** Makes the folder of a creation whose nodes are this server, which is reached at these ports too. */
export async function makeFolderFor(
  server: OpensshServer,
  directory: string,
  ports: readonly number[] = [server.port],
): Promise<CreationFiles> {
  const files = creationFiles(directory);
  await mkdir(directory, { recursive: true });
  await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
  for (const port of ports)
    await createKnownHosts(files.knownHosts).pin(
      "127.0.0.1",
      port,
      wireKey(server.firstHostKey.publicKey),
    );
  return files;
}
