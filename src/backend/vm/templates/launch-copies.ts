import { randomUUID } from "node:crypto";
import { constants, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { nodeHostname, nodeReference } from "../../../model/cluster-record.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { type Watchdog, watchdog } from "../../../system/time-limit.ts";
import { waits } from "../../../system/waits.ts";
import { deadlineSetup, hostsSetup, withoutComment } from "../../shared/first-boot.ts";
import { freshEntropy, reseedScript } from "../../../ssh/reseed.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { createDisk } from "../images/image-store.ts";
import { privateAddress } from "../machines/private-network.ts";
import { type LaunchPlan, makeMachineFolder, startMachines } from "../machines/launch.ts";
import { macAddresses } from "../machines/machine-arguments.ts";
import { consoleNames, machineFiles } from "../machines/machine-process.ts";
import { runOnMonitor } from "../qemu/monitor.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { loadState } from "../snapshots/machine-state.ts";
import { agentFolder, askAgent } from "./agent.ts";
import becomeNodeFile from "./become-node.sh" with { type: "text" };
import renewNamesFile from "./renew-names.sh" with { type: "text" };
import { templateNames } from "./make-template.ts";
import { type Template, templateFiles } from "./template-files.ts";

interface CopiesPlan extends LaunchPlan {
  readonly from: Template;
  /** Called when a machine has become the node: it accepts its own key and no other, and presents its own host key. */
  readonly onNode: (node: NodeFacts) => void;
}

export async function launchCopies(
  qemu: Qemu,
  plan: CopiesPlan,
  signal: AbortSignal,
): Promise<void> {
  const { directory, clock, from } = plan;
  const saved = templateFiles(from.folder);
  const prepare = async (node: NodeFacts, place: number): Promise<void> => {
    const files = await makeMachineFolder(
      directory,
      { ...plan.boot, hostKey: undefined },
      { node, place },
    );
    await copyFile(saved.console, join(files.folder, consoleNames.earlier));
    const image = { path: saved.disk, format: "qcow2" } as const;
    await createDisk(
      qemu,
      { path: files.disk, image, megabytes: plan.options.diskMegabytes },
      signal,
    );
    if (plan.firmware === undefined) return;
    await copyFile(saved.flash.program, files.flash.program, constants.COPYFILE_FICLONE);
    await copyFile(saved.flash.variables, files.flash.variables, constants.COPYFILE_FICLONE);
  };
  // They share this computer: each that becomes a node is progress for all.
  const waiting = new Set<Watchdog>();
  const follow = async (node: NodeFacts, place: number): Promise<void> => {
    const { folder } = machineFiles(directory, node);
    await loadState({ directory, node, state: saved.state, clock }, signal);
    await runOnMonitor(folder, [{ execute: "cont" }], signal);
    using quiet = watchdog(waits.becomingNode.limitMs, signal);
    waiting.add(quiet);
    try {
      await becomeNode(plan, { folder, node, place, quiet });
    } finally {
      waiting.delete(quiet);
    }
    for (const other of waiting) other.feed();
    plan.onNode(node);
  };
  await startMachines(qemu, { ...plan, memoryOf: () => saved.memory }, { prepare, follow }, signal);
}

interface NewNode {
  readonly folder: string;
  readonly node: NodeFacts;
  readonly place: number;
  readonly quiet: Watchdog;
}

async function becomeNode(
  plan: CopiesPlan,
  { folder, node, place, quiet }: NewNode,
): Promise<void> {
  const failure = (why: string): ClusterError =>
    new ClusterError(
      "machine-failed",
      `${nodeReference(node)} could not continue from a template: ${why}.`,
    );
  const script = identityScript(plan, { node, place });
  const report = await askAgent(folder, script, quiet.signal).catch((error: unknown) => {
    if (quiet.hasExpired()) throw failure(silence);
    quiet.signal.throwIfAborted();
    throw failure(messageOf(error));
  });
  if (report.is !== "done")
    throw failure("why" in report ? report.why : `it reported "${report.is}"`);
}

const silence = `neither it nor another copy answered within ${waits.becomingNode.limitMs / 60_000} minutes`;

/** Returns the script that makes a copy this node. It contains the node's host key, which only this way leads to. */
function identityScript(
  { boot, clock, firstHostKeys }: CopiesPlan,
  { node, place }: Pick<NewNode, "node" | "place">,
): string {
  const [old, own] = [macAddresses(templateNames.place), macAddresses(place)];
  const renames: readonly (readonly [string, string])[] = [
    [templateNames.instance, node.id],
    [templateNames.hostname, nodeHostname(node)],
    [old.outside, own.outside],
    [old.inside, own.inside],
    [privateAddress(templateNames.place).replaceAll(".", "\\."), privateAddress(place)],
  ];
  const hostKey = firstHostKeys.of(node);
  return shellText(becomeNodeFile, {
    NOW: (clock.now() / 1000).toFixed(3),
    ENTROPY: freshEntropy(),
    RESEED: reseedScript,
    NAME: nodeHostname(node),
    MACHINE_ID: randomUUID().replaceAll("-", ""),
    BOOT_ID: randomUUID(),
    RENEW_NAMES: shellText(renewNamesFile, { ROOT: "/", UUID: randomUUID() }),
    INSTANCE: node.id,
    OLD_INSTANCE: templateNames.instance,
    OLD_TEXTS: renames.map(([from]) => from).join("|"),
    RENAMING: renames.map(([from, to]) => `s/${from}/${to}/g`).join(";"),
    ADD_HOSTS: hostsSetup(boot.hosts ?? []),
    SET_DEADLINE: boot.deadline === undefined ? "" : deadlineSetup(boot.deadline),
    LOGIN: boot.user,
    LOGIN_KEY: withoutComment(boot.publicKey ?? ""),
    HOST_KEY: hostKey.privateKey.trim(),
    HOST_KEY_PUBLIC: hostKey.publicKey,
    FOLDER: agentFolder,
  });
}
