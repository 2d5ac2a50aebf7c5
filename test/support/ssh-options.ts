import type { Connection, Destination } from "../../src/ssh/connection/connection.ts";
import {
  type ConnectionOptions,
  openConnection,
} from "../../src/ssh/connection/open-connection.ts";
import { readPublicKey } from "../../src/ssh/keys.ts";
import { systemClock } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";
import type { OpensshServer } from "./openssh-server.ts";

export const { signal } = new AbortController();

export function wireKey(publicKey: string): Buffer {
  const key = readPublicKey(publicKey, "ssh-ed25519");
  if (key === undefined) throw new Error("no ed25519 key");
  return key;
}

export const destinationOf = ({
  port,
  user,
}: Pick<OpensshServer, "port" | "user">): Destination => ({
  id: "i-0",
  role: "master",
  index: 0,
  ssh: { host: "127.0.0.1", port, user },
});

type Server = Pick<OpensshServer, "port" | "user" | "loginKey" | "firstHostKey">;

export const optionsFor = ({ port, user, loginKey, firstHostKey }: Server): ConnectionOptions => ({
  name: "master_0",
  host: "127.0.0.1",
  port,
  user,
  privateKey: loginKey.privateKey,
  hostKeys: [wireKey(firstHostKey.publicKey)],
  connectTimeoutMs: 2_000,
  silenceMs: 5_000,
  keepaliveMs: 5_000,
  authenticationMayComeLater: false,
  clock: systemClock,
  progress: silentProgress,
});

export const connectTo = (
  server: Server,
  changes: Partial<ConnectionOptions>,
): Promise<Connection> => openConnection({ ...optionsFor(server), ...changes }, signal);
