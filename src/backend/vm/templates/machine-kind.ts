import { hardwareOf } from "../hardware.ts";
import { qemuVersion } from "../qemu/qemu.ts";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { cpus as processors, release } from "node:os";
import { delimiter, join } from "node:path";
import { isAccessible } from "../../../system/files/private-file.ts";
import { minimalEnvironment } from "../../../system/processes/run-program.ts";
import type { Environment } from "../../../system/runtime.ts";
import type { ImageFacts } from "../images/image-store.ts";
import { identityOf } from "../images/image-verification.ts";
import type { Accelerator, VmOptions } from "../options.ts";
import type { Qemu } from "../qemu/qemu.ts";
import type { Firmware } from "../qemu/firmware.ts";
import { installAgent } from "./agent.ts";
import type { TemplateKind } from "./template-files.ts";

/** Counts changes that the agent's text doesn't show, such as in QEMU's command line. */
const format = 3;

export interface MachineKind {
  readonly options: VmOptions;
  readonly accelerator: Accelerator;
  readonly firmware: Firmware | undefined;
  readonly image: ImageFacts;
}

/**
 * Returns a kind of machine, and the name of its template: two machines have the same only if the
 * state of one can continue as the other. The image counts as another one if anybody has touched
 * its file, since the template's disk is a layer on that very file.
 */
export async function kindOf(
  qemu: Qemu,
  { options, accelerator, firmware, image }: MachineKind,
  environment: Environment,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly kind: TemplateKind }> {
  const kind = {
    image: image.path,
    ...hardwareOf(options),
    diskMegabytes: options.diskMegabytes,
    accelerator,
    qemuVersion: await qemuVersion(qemu, signal),
  };
  const more = {
    format,
    installAgent,
    image: await identityOf(image.path),
    qemu: await programIdentity(qemu.systemName, environment),
    firmware,
    // Hardware shows machines what it has itself, and the system's kernel decides how.
    processor:
      accelerator === "tcg" ? qemu.architecture.translatedCpu : [processors()[0]?.model, release()],
  };
  const name = createHash("sha256")
    .update(JSON.stringify([kind, more]))
    .digest("hex")
    .slice(0, 16);
  return { name, kind };
}

async function programIdentity(name: string, environment: Environment): Promise<string> {
  for (const folder of (minimalEnvironment(environment)["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, name);
    if (await isAccessible(path, constants.X_OK)) return `${path} ${await identityOf(path)}`;
  }
  return "";
}
