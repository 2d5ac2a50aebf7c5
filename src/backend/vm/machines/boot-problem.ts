import { stat } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import { runCommand } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import { readTail } from "../../../system/files/read-text.ts";
import { plainLine, withoutFullStop } from "../../../system/printable.ts";
import type { Clock } from "../../../system/runtime.ts";
import type { Architecture } from "../qemu/architecture.ts";
import type { MachineFiles } from "./machine-process.ts";

/** The output of a whole boot. It is read twice a second. */
const readBytes = 128 * 1024;
/** A machine whose cloud-init works lets us in sooner. Much sooner, unless it is translated. */
const strangerLimitMs = 5 * 60_000;

/** Why a machine will not become a node, as far as its console shows. */
interface BootProblem {
  readonly what: string;
  readonly hint: string;
}

type Boots = Pick<Architecture, "firmware" | "name">;

const noSystem = ({ firmware, name }: Boots): BootProblem => ({
  what: `its ${firmware} finds nothing to start on the disk`,
  hint: `The image must be the disk of an installed ${name} system that boots with ${firmware}.`,
});

const damaged =
  "Check the image: its bootloader, its kernel, and how that finds the root file system.";

const dataSource =
  "Install cloud-init in the image, and allow the source NoCloud: see datasource_list in /etc/cloud.";

interface Sign {
  readonly pattern: RegExp;
  readonly problem: (found: string, boots: Boots) => BootProblem;
}

/** What firmware, bootloaders and systems print when they give up. Nothing but a restart follows. */
const signs: readonly Sign[] = [
  { pattern: /^No bootable device\./m, problem: (_, boots) => noSystem(boots) },
  {
    pattern: /^(?:BdsDxe: No bootable option or device was found|UEFI Interactive Shell v)/m,
    problem: (_, boots) => noSystem(boots),
  },
  {
    pattern: /Kernel panic - not syncing: IO-APIC \+ timer doesn't work/,
    problem: () => ({
      what: "its kernel got no clock in time",
      hint: "This computer was too busy to run a machine: try again when it has less to do.",
    }),
  },
  {
    pattern: /^\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? Kernel panic - not syncing: ([^\r\n]*)/m,
    problem: (found) => ({ what: `its kernel panicked (${shown(found)})`, hint: damaged }),
  },
  {
    pattern:
      /^(?:ALERT! {1,2}([^\r\n]{0,200})|dracut-[^\r\n]{0,60}(Warning: [^\r\n]{0,200} does not exist))/m,
    problem: (found) => ({
      what: `it does not find its root file system (${shown(found)})`,
      hint: damaged,
    }),
  },
  {
    pattern: /^Failed to mount ([^\r\n]{0,200}) as root file system/m,
    problem: (found) => ({
      what: `it cannot mount its root file system (${shown(found)})`,
      hint: damaged,
    }),
  },
  {
    pattern:
      /^(?:Press Enter for (?:maintenance|emergency shell)|Give root password for maintenance)/m,
    problem: () => ({ what: "its system stopped for maintenance", hint: damaged }),
  },
  {
    pattern: /^[^\r\n]{0,80}\b(?:You are in (emergency|rescue)|Entering (emergency)) mode\b/m,
    problem: (found) => ({ what: `its system is in ${found} mode`, hint: damaged }),
  },
  {
    pattern: /^\[ *\d+\.\d+\] systemd\[1\]: Freezing execution/m,
    problem: () => ({
      what: "its systemd has given up",
      hint: "Check the image, or try again when this computer has less to do: on a very busy one, systemd waits in vain for its own parts.",
    }),
  },
  {
    pattern:
      /\bCloud-init v\. \S{1,40} finished at [^\r\n]{0,80}\bDatasource DataSource(?!NoCloud)([A-Za-z]{1,40})/m,
    problem: (found) => ({
      what: `its cloud-init used the data source ${found} instead of NoCloud`,
      hint: dataSource,
    }),
  },
];

/** Prompts, behind which nothing goes on. They are the last that a console shows. */
const prompts: readonly Sign[] = [
  {
    pattern: /^(grub rescue|grub)> ?$/,
    problem: () => ({ what: "its bootloader GRUB does not find a system", hint: damaged }),
  },
  {
    pattern: /^(\(initramfs\)|dracut:\/#)/,
    problem: () => ({
      what: "its system stopped before it had found its file systems",
      hint: damaged,
    }),
  },
];

/**
 * Written to a console whenever its QEMU starts. What stands before it is of another boot, or of a
 * time that a snapshot has undone.
 */
export const startLine = "cluster-e2e: QEMU starts";

/** Only a new boot follows these lines. */
const beginnings =
  /^(?:cluster-e2e: QEMU starts$|SeaBIOS \(version |UEFI firmware \(version |\[ *0\.0+\](?:\[ *[TC]\d+\])? Linux version )/gm;
const login = /^([A-Za-z0-9][\w.-]{0,63}) login:/gm;
/** What cloud-init shows on consoles while it works. */
const cloudInit = /ci-info: |Cloud-init v\. /;

/** `quietMs` is the time since the last output, and `hostname` the name that cloud-init gives the machine. */
export function bootProblemIn(
  console: string,
  {
    hostname,
    quietMs,
    boots,
  }: { readonly hostname: string; readonly quietMs: number; readonly boots: Boots },
): BootProblem | undefined {
  const text = plainConsole(console);
  const last = Math.max(0, ...[...text.matchAll(beginnings)].map(({ index }) => index));
  const boot = text.slice(last);
  const lastLine = boot.trimEnd().split("\n").at(-1) ?? "";
  for (const { pattern, problem } of signs) {
    const found = pattern.exec(boot);
    if (found !== null)
      return problem(found.slice(1).find((each) => each !== undefined) ?? "", boots);
  }
  for (const { pattern, problem } of prompts) if (pattern.test(lastLine)) return problem("", boots);
  const name = [...boot.matchAll(login)].at(-1)?.[1];
  const isStranger = name !== undefined && name.split(".")[0] !== hostname && !cloudInit.test(boot);
  if (!isStranger || quietMs < strangerLimitMs) return undefined;
  return {
    what: `it asks for a login as ${shown(name)}, and its cloud-init has done nothing`,
    hint: dataSource,
  };
}

/** Without the sequences that move cursors and set colours. */
const plainConsole = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replaceAll(/\u001B\[[0-9;?=]*[A-Za-z]/g, "\n").replaceAll("\r", "\n");

const shown = (text: string): string => outside(withoutFullStop(plainLine(text)));

interface Machine {
  readonly files: Pick<MachineFiles, "console">;
  readonly hostname: string;
  readonly name: string;
}

interface BootFailure {
  readonly what: string;
  hint(problem: BootProblem): string;
}

const firstBoot: BootFailure = {
  what: "cannot become a node",
  hint: (problem) => `${problem.hint} The console output in the saved logs shows more.`,
};
const laterBoot: BootFailure = {
  what: "does not come back",
  hint: () =>
    `${runCommand("logs")} to see its console. A snapshot brings the cluster back, if there is one.`,
};

type Assertion = (machine: Machine, boots: Boots, clock: Pick<Clock, "now">) => Promise<void>;

const assertion =
  ({ what, hint }: BootFailure): Assertion =>
  async (machine, boots, clock) => {
    const problem = await findBootProblem(machine, boots, clock);
    if (problem === undefined) return;
    const { name } = machine;
    throw new ClusterError("machine-failed", `${name} ${what}: ${problem.what}.`, {
      hint: hint(problem),
      facts: { node: name, boots: false },
    });
  };

/** Throws `machine-failed` if the console of a machine shows that it will never become a node. */
export const assertBoots = assertion(firstBoot);
/** Throws `machine-failed` if the console of a machine that has been a node shows that it won't be one again. */
export const assertBootsAgain = assertion(laterBoot);

async function findBootProblem(
  { files, hostname }: Machine,
  boots: Boots,
  clock: Pick<Clock, "now">,
): Promise<BootProblem | undefined> {
  const text = await readTail(files.console, readBytes);
  // Somebody may destroy the cluster at any moment.
  const found = await stat(files.console).catch(() => undefined);
  if (text === "" || found === undefined) return undefined;
  return bootProblemIn(text, { hostname, quietMs: clock.now() - found.mtimeMs, boots });
}

/** Whether the error is that of `assertBoots`. A machine that boots again would end in the same way. */
export const neverBoots = (error: unknown): boolean =>
  error instanceof ClusterError && error.facts["boots"] === false;
