/** A real sshd, and what a session with it needs. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type ConnectionPool,
  createConnectionPool,
} from "../../src/ssh/connection/connection-pool.ts";
import { createKnownHosts, renderSshConfig } from "../../src/ssh/openssh-files.ts";
import type { TemporaryFolder } from "../../src/system/files/private-file.ts";
import { systemClock } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";
import { type OpensshServer, startOpensshServer } from "./openssh-server.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { destinationOf, wireKey } from "./ssh-options.ts";

export interface Setting extends AsyncDisposable {
  readonly server: OpensshServer;
  /** Has the configuration, the known hosts and the key, in files whose names have spaces. */
  readonly scratch: TemporaryFolder;
  readonly pool: ConnectionPool;
}

export async function openSetting(): Promise<Setting> {
  const [server, scratch] = await Promise.all([startOpensshServer([]), scratchFolder()]);
  const knownHosts = createKnownHosts(join(scratch.path, "known hosts"));
  await knownHosts.pin("127.0.0.1", server.port, wireKey(server.firstHostKey.publicKey));
  const files = {
    identityFile: join(scratch.path, "the key"),
    knownHostsFile: knownHosts.path,
  };
  await writeFile(files.identityFile, server.loginKey.privateKey, { mode: 0o600 });
  await writeFile(
    join(scratch.path, "ssh config"),
    renderSshConfig([destinationOf(server)], files),
  );
  const pool = createConnectionPool({
    privateKeyFile: files.identityFile,
    knownHosts,
    clock: systemClock,
    progress: silentProgress,
  });
  return {
    server,
    scratch,
    pool,
    [Symbol.asyncDispose]: async () => {
      await pool[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
