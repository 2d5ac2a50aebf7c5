import { randomUUID } from "node:crypto";
import { mkdir, readdir, realpath, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as read from "../../../model/reader.ts";
import { cacheFolder } from "../../../store/state-folder.ts";
import {
  errorCode,
  isAccessible,
  makePrivateFolder,
  writePrivateFile,
} from "../../../system/files/private-file.ts";
import { readOwnJson, readOwnText } from "../../../system/files/read-text.ts";
import { acquireProcessLock } from "../../../system/processes/process-identity.ts";
import type { Clock, Environment, Progress } from "../../../system/runtime.ts";
import { acquireIdleLock } from "../../shared/lock-machines.ts";
import { parseTime } from "../../shared/saved-cluster.ts";
import { clusterFactsPath, parseTemplateName } from "../cluster-facts.ts";
import { identityOf } from "../images/image-verification.ts";
import { hardwareFields } from "../hardware.ts";
import { accelerators } from "../options.ts";
import { usedBytes } from "../snapshots/snapshot-files.ts";

const schemaVersion = 1;

/** What users know about a kind of machine. */
const parseKind = read.object({
  image: read.string,
  ...hardwareFields,
  diskMegabytes: read.positiveInteger,
  accelerator: read.oneOf(...accelerators),
  qemuVersion: read.string,
});

export type TemplateKind = read.ValueOf<typeof parseKind>;

/** The content of `template.json` in a template's folder. */
const parseFacts = read.object({
  schemaVersion: read.oneOf(schemaVersion),
  createdAt: parseTime,
  kind: parseKind,
  /** Why machines of this kind can't be copied. Absent: they can. */
  problem: read.optional(read.string),
  /** Until when the problem counts, because it may have been an accident. Absent: for good. */
  problemUntil: read.optional(parseTime),
  /**
   * The `identityOf` each file, by name. A file that anybody has touched since is damaged: to read
   * gigabytes of memory at each creation would take longer than everything else.
   */
  files: read.mapping(read.string, read.string),
});

type TemplateFacts = read.ValueOf<typeof parseFacts>;

export interface Template {
  readonly name: string;
  readonly folder: string;
}

/**
 * Templates are in a folder each, named after the kind of machine. The folder of one that is being
 * made or removed begins with a dot.
 */
export const templatesFolder = (environment: Environment): string =>
  join(cacheFolder(environment), "templates");

export const templateFiles = (folder: string) => ({
  facts: join(folder, "template.json"),
  memory: join(folder, "memory"),
  state: join(folder, "state"),
  disk: join(folder, "disk.qcow2"),
  console: join(folder, "console.txt"),
  /** Exist only for machines whose firmware isn't built in. */
  flash: {
    program: join(folder, "firmware.qcow2"),
    variables: join(folder, "firmware-variables.qcow2"),
  },
  /** One file for each cluster that was created from the template, with the path of the cluster's folder. */
  users: join(folder, "users"),
});

export const templateNamed = (environment: Environment, name: string): Template => ({
  name,
  folder: join(templatesFolder(environment), name),
});

export const draftFolder = (folder: string, name: string): string =>
  join(folder, `.${name}-${randomUUID()}`);

interface Store {
  readonly folder: string;
  readonly clock: Clock;
}

/** Holds the lock of a template that is made, used for the first time by a cluster, or removed. */
export async function lockTemplate(
  { folder, clock }: Store,
  name: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const onWait = (advice: string): void =>
    progress.note(`Waiting for another process that makes the same template.${advice}`);
  await makePrivateFolder(join(folder, ".."));
  await makePrivateFolder(folder);
  return acquireProcessLock(lockPath(folder, name), { clock, onWait }, signal);
}

const lockPath = (folder: string, name: string): string => join(folder, `${name}.lock`);

export async function readTemplate({
  folder,
}: Pick<Template, "folder">): Promise<TemplateFacts | undefined> {
  const facts = await readOwnJson(templateFiles(folder).facts, parseFacts);
  if (facts === undefined || facts.problem !== undefined) return facts;
  const areSame = await Promise.all(
    Object.entries(facts.files).map(
      async ([name, identity]) =>
        identity === (await identityOf(join(folder, name)).catch(() => undefined)),
    ),
  );
  return areSame.every(Boolean) ? facts : undefined;
}

/** Completes a template's folder. The files in it are on the disk for good. */
export async function writeTemplate(
  folder: string,
  facts: Pick<TemplateFacts, "kind" | "problem" | "problemUntil" | "createdAt">,
): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== "users");
  const files = Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await identityOf(join(folder, name))] as const),
    ),
  );
  const text = JSON.stringify(
    { schemaVersion, ...facts, files } satisfies TemplateFacts,
    undefined,
    2,
  );
  await writePrivateFile(templateFiles(folder).facts, `${text}\n`);
}

/**
 * Saves that this cluster needs the template, for a caller that holds its lock, or the lock of
 * another cluster that needs it.
 */
export async function markUsed(
  { folder }: Template,
  creationId: string,
  directory: string,
): Promise<void> {
  const { users, facts } = templateFiles(folder);
  // With another cache folder, the template is not among those that this program removes.
  if (!(await isAccessible(facts))) return;
  await mkdir(users, { recursive: true, mode: 0o700 });
  const real = await realpath(directory);
  await writePrivateFile(
    join(users, creationId),
    `${await identityOfFolder(dirname(real))}\n${real}`,
  );
  const now = new Date();
  await utimes(facts, now, now);
}

export async function unmarkUsed({ folder }: Template, creationId: string): Promise<void> {
  await rm(join(templateFiles(folder).users, creationId), { force: true });
}

/** Stays the same if the folder is moved within its disk; another folder at the same path has another one. */
async function identityOfFolder(path: string): Promise<string> {
  const { ino, birthtimeMs } = await stat(path);
  return `${ino}:${birthtimeMs}`;
}

/** Returns the folders of the clusters that need the template: those that run, are stopped, or have snapshots. */
async function usersOf(folder: string): Promise<readonly string[]> {
  const { users } = templateFiles(folder);
  // If somebody needs a template that counts as unused, its removal breaks machines: whatever can't
  // be read counts as a user.
  const names = await readdir(users).catch((error: unknown) => (isMissing(error) ? [] : undefined));
  if (names === undefined) return [users];
  const directories = await Promise.all(names.map(async (name) => userOf(join(users, name))));
  return directories.filter((directory) => directory !== undefined);
}

const isMissing = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "");

/**
 * Clusters that are removed no longer need their templates. Only of those that were removed by
 * other means, or moved, is nothing known.
 */
const longestUnknownMs = 30 * 24 * 3_600_000;

/**
 * Returns the folder of the cluster that the mark is about; the mark itself if that can't be read;
 * undefined if nobody needs it.
 */
async function userOf(mark: string): Promise<string | undefined> {
  const [root = "", directory = ""] = (await readOwnText(mark).catch(() => "")).split("\n");
  const user = directory === "" ? mark : directory;
  if (directory !== "") {
    const isThere = await stat(clusterFactsPath(directory)).then(
      () => true,
      (error: unknown) => !isMissing(error),
    );
    if (isThere) return user;
    // The folder of all clusters is the one of then: this cluster has been removed from it.
    if ((await identityOfFolder(dirname(directory)).catch(() => "")) === root) return undefined;
  }
  const information = await stat(mark).catch(() => undefined);
  const isOld = information === undefined || Date.now() - information.mtimeMs >= longestUnknownMs;
  return isOld ? undefined : user;
}

export interface StoredTemplate extends Template {
  /** Undefined: it is damaged. */
  readonly facts: TemplateFacts | undefined;
  readonly usedAt: Date;
  readonly sizeBytes: number;
  readonly users: readonly string[];
}

/** Returns all templates, the one that was used last at the end. */
export async function listTemplates(folder: string): Promise<readonly StoredTemplate[]> {
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => parseTemplateName(name) !== undefined)
      .map(async (name): Promise<StoredTemplate> => {
        const own = join(folder, name);
        const [facts, users, sizeBytes, usedAt] = await Promise.all([
          readTemplate({ folder: own }),
          usersOf(own),
          usedBytes(own),
          stat(templateFiles(own).facts).then(
            ({ mtime }) => mtime,
            () => new Date(0),
          ),
        ]);
        return { name, folder: own, facts, users, sizeBytes, usedAt };
      }),
  );
  return found.toSorted((a, b) => a.usedAt.getTime() - b.usedAt.getTime());
}

/** Removes a template unless a cluster needs it, for a caller that holds its lock. Returns whether it is gone. */
export async function removeUnused({ folder }: Store, name: string): Promise<boolean> {
  const own = join(folder, name);
  if ((await usersOf(own)).length > 0) return false;
  const draft = draftFolder(folder, name);
  if (await isAccessible(own)) await rename(own, draft);
  await rm(draft, { recursive: true, force: true });
  return true;
}

/** Removes a template that nobody needs, makes or removes at the moment. */
export async function removeTemplate(
  store: Store,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  await using lock = await acquireIdleLock(lockPath(store.folder, name), store.clock, signal);
  return lock !== undefined && (await removeUnused(store, name));
}

/**
 * Removes the unused templates that were used longest ago until the rest takes no more than this,
 * and what interrupted programs left.
 */
export async function limitTemplates(
  store: Store,
  mostBytes: number,
  signal: AbortSignal,
): Promise<void> {
  await removeDrafts(store, signal);
  const templates = await listTemplates(store.folder);
  const total = { bytes: templates.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  for (const { name, sizeBytes } of templates) {
    if (total.bytes <= mostBytes) return;
    if (await removeTemplate(store, name, signal)) total.bytes -= sizeBytes;
  }
}

async function removeDrafts({ folder, clock }: Store, signal: AbortSignal): Promise<void> {
  const names = (await readdir(folder).catch(() => [])).filter((name) =>
    /^\.[0-9a-f]{16}-/.test(name),
  );
  for (const name of names) {
    await using lock = await acquireIdleLock(lockPath(folder, name.slice(1, 17)), clock, signal);
    if (lock !== undefined) await rm(join(folder, name), { recursive: true, force: true });
  }
}
