import { freemem, platform, totalmem } from "node:os";
import { join } from "node:path";
import type { Check } from "../../model/check.ts";
import { stateFolder } from "../../system/files/state-folder.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { hostArchitecture } from "./qemu/architecture.ts";
import { acceleratorCheck, featuresCheck, firmwareCheck, qemuCheck } from "./checks/engine.ts";
import { diskCheck, imageCheck, memoryCheck } from "./checks/host.ts";
import { leftoversCheck } from "./checks/leftovers.ts";
import { openQemu } from "./qemu/qemu.ts";

/** Returns `doctor`'s checks for clusters of virtual machines, in display order. They change nothing. */
export function vmChecks(surroundings: Surroundings, architecture = hostArchitecture()): readonly Check[] {
  const qemu = openQemu(surroundings, architecture);
  const root = join(stateFolder(surroundings.environment), "vm");
  return [
    qemuCheck(qemu),
    acceleratorCheck(qemu, platform(), surroundings.environment),
    featuresCheck(qemu),
    firmwareCheck(qemu),
    memoryCheck({ totalBytes: totalmem(), freeBytes: freemem() }),
    diskCheck(root),
    imageCheck(surroundings.environment),
    leftoversCheck(root),
  ];
}
