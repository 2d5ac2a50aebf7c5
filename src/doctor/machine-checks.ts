import { arch, platform, release } from "node:os";
import type { Environment } from "../system/environment.ts";
import { stateFolder } from "../system/files/state-folder.ts";
import type { Check } from "../model/check.ts";
import { browserCheck } from "./browser.ts";
import { operatingSystemCheck } from "./operating-system.ts";
import { runtimeVariablesCheck } from "./runtime-variables.ts";
import { sshClientCheck } from "./ssh-client.ts";
import { stateFolderCheck } from "./state-folder.ts";
import { neededBytes, temporarySpaceCheck } from "./temporary-space.ts";

interface Start {
  readonly environment: Environment;
  readonly runtimeVariables: readonly string[];
}

/** The checks that all backends need of this machine, combined with a backend's own checks. */
export function machineChecks({ environment, runtimeVariables }: Start, own: readonly Check[]): readonly Check[] {
  return [
    operatingSystemCheck({ platform: platform(), release: release(), architecture: arch() }),
    runtimeVariablesCheck(runtimeVariables),
    sshClientCheck(environment),
    stateFolderCheck(stateFolder(environment)),
    temporarySpaceCheck(environment["TMPDIR"] ?? "/tmp", neededBytes),
    ...own,
    browserCheck(platform(), environment),
  ];
}
