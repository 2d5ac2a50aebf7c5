import { type Check, fail, type Outcome, pass, skip, warn } from "../../../model/check.ts";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { systemTemporaryFolder } from "../../../system/files/temporary-folder.ts";
import type { Environment } from "../../../system/runtime.ts";
import { type AcceleratorTrial, chooseAccelerator, trialLimitsMs, tryAccelerators } from "../qemu/accelerator.ts";
import { type BrokenAccelerator, brokenAcceleratorPath, readBrokenAccelerator } from "../qemu/broken-accelerator.ts";
import { findFirmware } from "../qemu/firmware.ts";
import { type Qemu, qemuVersion } from "../qemu/qemu.ts";
import { isOlder, leastVersion, streamVersion } from "../resolve-creation.ts";

const limitMs = 20_000;
/** Longer than any trial. */
const acceleratorLimitMs = 40_000;
const installation = ({ architecture }: Qemu): string =>
  `Install a newer version or another build (Debian and Ubuntu: ${architecture.packages}).`;

/** Checks whether there is a QEMU that can run clusters. Failures are ClusterErrors that say what to do. */
export function qemuCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const version = await qemuVersion(qemu, signal);
    await qemu.image(["--version"], signal);
    const text = `Version ${version.join(".")}`;
    if (!isOlder(version, streamVersion)) return pass(text);
    if (isOlder(version, leastVersion)) return fail(`${text} is too old.`, installation(qemu));
    return warn(
      `${text} can only run single machines: networks between machines need ${streamVersion.join(".")}.`,
      `${installation(qemu)} Until then, pass \`agents 0\` \`publicAgents 0\`.`,
    );
  };
  return { name: "qemu", limitMs, run };
}

/** Reports which accelerator is used, and why the faster ones are not. */
export function acceleratorCheck(qemu: Qemu, platform: NodeJS.Platform, environment: Environment): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const trials = await tryAccelerators(qemu, platform, trialLimitsMs, signal).catch(missingAsUndefined);
    if (trials === undefined) return skip("Not checked: QEMU is missing.");
    const broken = await readBrokenAccelerator(environment);
    const best = chooseAccelerator(trials, { forced: undefined, broken }, qemu.architecture);
    if (broken !== undefined && hasPassed(trials, broken)) return brokenOutcome(broken, environment);
    const problems = trials.filter(({ problem }) => problem !== undefined);
    const others = problems.map(({ accelerator, problem }) => `${accelerator} does not work: ${problem}`);
    if (best !== "tcg") return pass(best, others);
    return warn(
      `Only tcg works, which is about ten times slower. ${others.join("; ")}.`,
      platform === "linux"
        ? "Enable the processor's virtualization, and get access to /dev/kvm: sudo usermod -aG kvm $USER"
        : "Use a QEMU that was built with hvf, such as Homebrew's.",
    );
  };
  return { name: "accelerator", limitMs: acceleratorLimitMs, run };
}

const hasPassed = (trials: readonly AcceleratorTrial[], { accelerator }: BrokenAccelerator): boolean =>
  trials.some((trial) => trial.accelerator === accelerator && trial.problem === undefined);

const brokenOutcome = ({ accelerator, reason }: BrokenAccelerator, environment: Environment): Outcome =>
  warn(
    `${accelerator} passes its test, but has broken a machine since this computer started: ${outside(reason)}. ` +
      "Until the next restart, machines run under tcg, which is about ten times slower.",
    `To try again: cluster-vm create --accelerator ${accelerator}, or remove ${brokenAcceleratorPath(environment)}`,
  );

/** Checks features that some builds of QEMU lack. */
export function featuresCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const lacking = await findLacking(qemu, signal).catch(missingAsUndefined);
    if (lacking === undefined) return skip("Not checked: QEMU is missing.");
    if (lacking.length === 0) return pass("user networks, vvfat");
    return fail(`This QEMU was built without ${lacking.join(" and ")}.`, installation(qemu));
  };
  return { name: "qemu features", limitMs, run };
}

/** Checks the firmware only if machines have none built in. A missing firmware is a ClusterError that says what to do. */
export function firmwareCheck(qemu: Qemu): Check {
  const run = async (signal: AbortSignal): Promise<Outcome> => {
    const found = await findFirmware(qemu, signal).then((firmware) => ({ firmware }), missingAsUndefined);
    if (found === undefined) return skip("Not checked: QEMU is missing.");
    return pass(found.firmware?.program.path ?? `${qemu.architecture.firmware}, built in`);
  };
  return { name: "firmware", limitMs, run };
}

async function findLacking(qemu: Qemu, signal: AbortSignal): Promise<readonly string[]> {
  await using folder = await systemTemporaryFolder();
  const seed = `json:${JSON.stringify({ driver: "vvfat", dir: folder.path })}`;
  const [networks, drive] = await Promise.all([
    qemu.system(["-netdev", "help"], signal),
    qemu.image(["info", seed], signal),
  ]);
  return [
    ...(/^user$/m.test(networks.stdout) ? [] : ["user networks (slirp)"]),
    ...(drive.status === 0 ? [] : ["the block driver vvfat"]),
  ];
}

/** Another check reports that QEMU is missing. */
function missingAsUndefined(error: unknown): undefined {
  if (error instanceof ClusterError && error.facts["program"] !== undefined) return undefined;
  throw error;
}
