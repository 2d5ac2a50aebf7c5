import type {
  Backend,
  Creation,
  CreationFolder,
  CreationRequest,
} from "../../src/backend/contract.ts";
import { Client } from "ssh2";
import type { ClusterRecord, Counts, Role } from "../../src/model/cluster-record.ts";
import { generateKeyPair } from "../../src/ssh/keys.ts";
import { createKnownHosts } from "../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../src/store/creation-folder.ts";
import { exampleCluster } from "./install-example.ts";
import type { FolderMachines } from "./install-machine.ts";

interface FolderBackend {
  readonly backend: Backend<undefined>;
  /** The ids of destroyed clusters, in order. */
  readonly destroyed: readonly string[];
}

/** A backend whose clusters consist of these machines. */
export function folderBackend(machines: FolderMachines): FolderBackend {
  const standing = new Map<string, ClusterRecord>();
  const destroyed: string[] = [];
  const backend: Backend<undefined> = {
    name: "container",
    nodes: {
      ipDetect: "#!/bin/sh\necho 192.0.2.7\n",
      ipDetectPublic: undefined,
      nodesKeepTime: false,
      cgroups1Advice: "",
    },
    plan: async (request) =>
      creationOf(request, machines, (cluster) => standing.set(cluster.id, cluster)),
    find: async (id) => standing.get(id),
    list: async () => [...standing.values()],
    remove: async ({ id }) => {
      standing.delete(id);
      destroyed.push(id);
    },
    consoleOutput: async () => [{ name: "master_0.console.txt", text: "it booted\n" }],
  };
  return { backend, destroyed };
}

function countsOf({ nodes }: Pick<FolderMachines, "nodes">): Counts {
  const count = (wanted: Role): number => nodes.filter(({ role }) => role === wanted).length;
  return { master: count("master"), agent: count("agent"), public_agent: count("public_agent") };
}

/** The machines already run and have host keys, so that a creation only has to find them, and to log in with its own key. */
function creationOf(
  { clusterId: id, variant }: CreationRequest<undefined>,
  machines: FolderMachines,
  onLook: (cluster: ClusterRecord) => void,
): Creation {
  const state: { folder?: CreationFolder } = {};
  const present = (): ClusterRecord => ({
    ...exampleCluster(machines.nodes, variant),
    id,
    ...state.folder!,
  });
  return {
    summary: { counts: countsOf(machines), lines: [], facts: {} },
    firstLogin: {
      lookEveryMs: 50,
      limitMs: 10_000,
      everyMs: 100,
      hostKey: () => ({ publicKey: generateKeyPair("first").publicKey, isPrivate: false }),
    },
    claim: async (folder) => {
      state.folder = { creationId: folder.creationId, directory: folder.directory };
      await pinHostKeys(machines, folder.directory);
    },
    launch: async (publicKey) => machines.admit(publicKey),
    look: async () => {
      const cluster = present();
      onLook(cluster);
      return cluster;
    },
    describe: async () => present(),
    stop: async () => {},
    remove: async () => undefined,
    remains: () => ({ kept: "", left: "Machines may be left." }),
  };
}

async function pinHostKeys({ nodes }: FolderMachines, directory: string): Promise<void> {
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  for (const { ssh } of nodes) await knownHosts.pin(ssh.host, ssh.port, await hostKeyOf(ssh));
}

/** The host key that the machine presents. */
async function hostKeyOf({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const client = new Client();
  client.on("error", () => {});
  const hostVerifier = (key: Buffer): boolean => {
    resolve(key);
    return false;
  };
  client.connect({ host, port, username: "nobody", hostVerifier });
  return promise;
}
