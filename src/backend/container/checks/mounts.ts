import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type Check, type Outcome, pass, skip, warn } from "../../../model/check.ts";
import { ClusterError, messageOf } from "../../../errors.ts";
import type { Environment } from "../../../system/runtime.ts";
import { homeFolder } from "../../../system/files/state-folder.ts";
import { temporaryFolder } from "../../../system/files/temporary-folder.ts";
import { builtImages } from "../launch/containerfiles.ts";
import type { Engine } from "../engine/engine.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { findRights } from "../launch/system-flags.ts";
import { checkOfEngine, type ContainerFacts } from "./facts.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

const target = "/cluster-e2e-mount";
const enforceFile = "/sys/fs/selinux/enforce";

/**
 * Checks whether nodes can read their volumes, and how this machine's SELinux affects that. The first check mounts a folder in the user's home,
 * because a virtual machine shares only some folders with its containers, and an engine elsewhere shares none of ours.
 */
export function volumeChecks(
  facts: ContainerFacts,
  environment: Environment,
  signal: AbortSignal,
): readonly [mounts: Check, selinux: Check] {
  return [
    checkOfEngine("mounts", facts, async (told, engine) => tryMount({ told, engine, environment }, signal)),
    checkOfEngine("selinux", facts, async () => {
      if ((await facts.reach().catch(() => undefined)) !== "direct")
        return skip("Not checked: nodes do not run on this machine.");
      return judgeSelinux(await readOwnText(enforceFile).catch(() => undefined));
    }),
  ];
}

interface Trial {
  readonly told: EngineFacts;
  readonly engine: Engine;
  readonly environment: Environment;
}

async function tryMount({ told, engine, environment }: Trial, signal: AbortSignal): Promise<Outcome> {
  const image = await ownImage(engine, signal);
  if (image === undefined) return skip("Not checked: there is no node image until the first create builds one.");
  const home = homeFolder(environment);
  const made = await temporaryFolder(home).catch(() => undefined);
  if (made === undefined) return skip(`Not checked: cannot create a folder in ${home}.`);
  await using folder = made;
  // On an interrupt, and after this check's limit, the program ends without waiting for work under way here.
  signal.addEventListener("abort", () => rmSync(folder.path, { recursive: true, force: true }), { once: true });
  const text = randomBytes(16).toString("hex");
  await writeFile(join(folder.path, "note"), text);
  const { words } = await findRights(engine, told, image);
  const mount = `--mount=type=bind,source=${folder.path},target=${target},readonly`;
  const run = ["run", "--rm", ...words, "--network=none", mount, "--entrypoint=/bin/cat", image, `${target}/note`];
  const problem = await engine.ask({ words: run }, signal).then(
    (read) => (read === text ? undefined : "its content differs there."),
    (error: unknown) => {
      if (error instanceof ClusterError) return messageOf(error);
      throw error;
    },
  );
  if (problem === undefined) return pass(`Containers can read this machine's folders, such as those in ${home}`);
  return warn(
    `A container cannot read a folder in ${home}, so \`customVolumes\` will not work: ${problem}`,
    remedy(told, engine),
  );
}

async function ownImage(engine: Engine, signal: AbortSignal): Promise<string | undefined> {
  const words = ["images", `--filter=reference=${builtImages}`, "--format={{.Repository}}:{{.Tag}}"];
  // Podman lists all names of the image, even if only one was asked for.
  return (await engine.ask({ words }, signal)).split("\n").find((name) => name.startsWith(`${builtImages}:`));
}

const remedy = ({ location }: EngineFacts, { kind }: Engine): string =>
  location === "here"
    ? "The folders must be readable for root on this machine."
    : `Share them with the virtual machine in which ${kind.title} runs. Docker Desktop: Settings, Resources, File sharing. Podman: podman machine init --volume.`;

/** `enforce` is the content of the kernel's file; undefined if there is none. */
export function judgeSelinux(enforce: string | undefined): Outcome {
  if (enforce?.trim() !== "1") return pass("Not enforcing on this machine");
  return pass(
    "Enforcing, but nodes are not confined by it: `customVolumes` needs no :z, which would relabel your files for good",
  );
}
