import { mkdir } from "node:fs/promises";
import { ClusterError, messageOf } from "../../../errors.ts";
import { withoutFullStop } from "../../../system/printable.ts";
import type { Runtime, Work } from "../../../system/runtime.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { neverBoots } from "../machines/boot-problem.ts";
import { readOwnCluster } from "../machines/launch.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { type Making, makeTemplate } from "./make-template.ts";
import {
  type Template,
  type TemplateKind,
  limitTemplates,
  lockTemplate,
  markUsed,
  readTemplate,
  removeUnused,
  templateNamed,
  templatesFolder,
  unmarkUsed,
  writeTemplate,
} from "./template-files.ts";
import { type MachineKind, kindOf } from "./machine-kind.ts";

export interface TemplateRequest
  extends MachineKind, Pick<Making, "directory" | "isSandboxed" | "limitMs"> {
  readonly creationId: string;
  /** Templates may take this much space on the disk before unused ones are removed. */
  readonly mostBytes: number;
}

/**
 * Returns the template for this kind of machine, which the creation uses from now on. Makes it if
 * it is missing or damaged. Returns `undefined` if machines of this kind can't be copied; says so
 * once.
 */
export async function obtainTemplate(
  work: Work,
  qemu: Qemu,
  request: TemplateRequest,
): Promise<Template | undefined> {
  const { clock, environment, progress } = work;
  const folder = templatesFolder(environment);
  const store = { folder, clock };
  const { name, kind } = await kindOf(qemu, request, environment, work.signal);
  const template = templateNamed(environment, name);
  using step = progress.start("Make a template of the machines");
  {
    await using _ = await lockTemplate(store, name, progress, work.signal);
    const found = await readTemplate(template);
    const isOver =
      found?.problemUntil !== undefined && Date.parse(found.problemUntil) <= clock.now();
    if (found?.problem !== undefined && !isOver) {
      const text = `Every machine boots: ${found.problem}.`;
      if (found.problemUntil === undefined) progress.detail(1, text);
      else
        progress.note(
          `${text} A template is tried again after ${found.problemUntil}, or now if you run: ${removal(name)}`,
        );
      return undefined;
    }
    if (found === undefined || isOver) {
      if (!(await removeUnused(store, name))) {
        progress.note(
          `The template ${name} is damaged, and clusters need what is left of it: every machine boots.`,
        );
        return undefined;
      }
      try {
        await makeTemplate(qemu, { ...request, name, kind, store: folder, clock }, work.signal);
      } catch (error) {
        work.signal.throwIfAborted();
        await assertNotRemoved(work, request.directory);
        if (neverBoots(error)) throw error;
        await refuse(template, { kind, error }, work);
        return undefined;
      }
    }
    await markUsed(template, request.creationId, request.directory);
  }
  await limitTemplates(store, request.mostBytes, work.signal);
  step.done();
  return template;
}

/** Another command may have ended the machine, to remove the cluster. */
async function assertNotRemoved(work: Work, directory: string): Promise<void> {
  await using _ = await lockMachines(work, directory);
  await readOwnCluster(directory);
}

/**
 * A copy did not become a node. Removes the template, for a creation whose machines are gone, and
 * remembers why, so that later creations boot.
 */
export async function rejectTemplate(
  work: Work,
  qemu: Qemu,
  {
    request,
    template,
    error,
  }: { readonly request: TemplateRequest; readonly template: Template; readonly error: unknown },
): Promise<void> {
  const { clock, environment, progress } = work;
  const store = { folder: templatesFolder(environment), clock };
  const { name, kind } = await kindOf(qemu, request, environment, work.signal);
  await using _ = await lockTemplate(store, name, progress, work.signal);
  await unmarkUsed(template, request.creationId);
  if (name === template.name && (await removeUnused(store, name)))
    await refuse(template, { kind, error }, work);
  else progress.note(fallBackNote(error));
}

/** How long a fault is remembered that may have been an accident. */
const accidentMs = 3_600_000;

const removal = (name: string): string => `cluster-vm templates remove ${name}`;

/**
 * Tells the user, and remembers a machine's own fault: for good if its agent has reported that the
 * image doesn't suit, and otherwise for an hour. Anything else, such as a full disk, may be gone
 * next time.
 */
async function refuse(
  { folder, name }: Template,
  { kind, error }: { readonly kind: TemplateKind; readonly error: unknown },
  { clock, progress }: Runtime,
): Promise<void> {
  if (!(error instanceof ClusterError)) throw error;
  const isRemembered = error.id === "machine-failed" || error.id === "deadline-passed";
  const again = isRemembered ? ` To try again: ${removal(name)}` : "";
  progress.note(`${fallBackNote(error)}${again}`);
  if (!isRemembered) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const problem = withoutFullStop(messageOf(error));
  const isLasting = error.facts["suits"] === false;
  const problemUntil = isLasting ? undefined : new Date(clock.now() + accidentMs).toISOString();
  await writeTemplate(folder, {
    kind,
    createdAt: new Date(clock.now()).toISOString(),
    problem,
    problemUntil,
  });
}

const fallBackNote = (error: unknown): string =>
  `No template can be used (${withoutFullStop(messageOf(error))}): every machine boots.`;
