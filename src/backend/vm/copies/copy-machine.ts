import { constants, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import type { KeyPair } from "../../../ssh/keys.ts";
import { errorCode } from "../../../system/error-code.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { hostname } from "../machines/launch.ts";
import { machineFiles } from "../machines/machine-files.ts";
import { writeSeed } from "../machines/seed.ts";
import { sshUser } from "../records.ts";
import { savedFiles } from "../snapshots/snapshot-files.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { parseJson } from "../../../system/parse-json.ts";

interface Origin {
  /** The folder of the source cluster. */
  readonly directory: string;
  readonly node: Pick<NodeFacts, "id" | "role" | "index">;
  /** The folder of its snapshot. */
  readonly snapshot: string;
}

interface MachineCopy {
  /** The folder of the new cluster. */
  readonly directory: string;
  readonly node: NodeFacts;
  readonly place: number;
  /** All nodes of the new cluster. */
  readonly hosts: readonly NodeFacts[];
  readonly publicKey: string;
  readonly firstHostKey: KeyPair;
}

/** Makes the files of a machine that continues from a snapshot. Throws `capacity-lacking` if the disk is full. */
export async function copyMachine(origin: Origin, copy: MachineCopy): Promise<void> {
  const from = machineFiles(origin.directory, origin.node);
  const saved = savedFiles(origin.node);
  const { node, place, publicKey, firstHostKey } = copy;
  const to = machineFiles(copy.directory, node);
  await mkdir(to.folder, { recursive: true, mode: 0o700 });
  try {
    await copyFile(join(origin.snapshot, saved.disk), to.disk, constants.COPYFILE_FICLONE);
    await copyIfPresent(join(origin.snapshot, saved.variables), to.flash.variables);
    await copyIfPresent(from.flash.program, to.flash.program);
    const hosts = copy.hosts.map((each) => ({ address: each.privateAddress, name: hostname(each) }));
    await writeSeed(to.seed, {
      instanceId: (await readInstanceId(from.seed)) ?? origin.node.id,
      hostname: hostname(node),
      place,
      boot: { user: sshUser, publicKey, hostKey: firstHostKey, deadline: undefined, hosts, lingers: true },
    });
  } catch (error) {
    if (errorCode(error) !== "ENOSPC") throw error;
    throw new ClusterError("capacity-lacking", `The disk is full: ${nodeReference(node)} cannot be copied.`, {
      hint: "Make room, or delete a snapshot.",
      cause: error,
    });
  }
}

/** Only some machines have firmware of their own. */
async function copyIfPresent(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
  });
}

/** With another instance id, cloud-init would set the machine up again when it boots, and give it the first host key. */
async function readInstanceId(seed: string): Promise<string | undefined> {
  try {
    const found: unknown = parseJson(await readOwnText(join(seed, "meta-data")));
    const id = isMapping(found) ? found["instance-id"] : undefined;
    return typeof id === "string" && /^[\w-]{1,64}$/.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}
