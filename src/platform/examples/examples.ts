import { mkdir, open, readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, systemReason } from "../../errors.ts";
import type { Role } from "../../model/cluster-record.ts";
import type { PlatformFacts } from "../folder/platform-file.ts";
import { cannotWrite } from "../../system/files/draft.ts";
import { isDiskFull } from "../../system/files/private-file.ts";
import { platformFolderOf } from "../folder/read-folder.ts";
import { type ExampleName, exampleNames } from "./example-names.ts";
import bareCheck from "./bare/check" with { type: "text" };
import bareInstall from "./bare/install" with { type: "text" };
import bareFacts from "./bare/platform.yaml" with { type: "text" };
import etcdCheck from "./etcd/check" with { type: "text" };
import etcdInstall from "./etcd/install" with { type: "text" };
import etcdFacts from "./etcd/platform.yaml" with { type: "text" };
import etcdTest from "./etcd/tests/etcd-test" with { type: "text" };
import etcdUpgrade from "./etcd/upgrade" with { type: "text" };
import pacemakerCheck from "./pacemaker/check" with { type: "text" };
import pacemakerCorosyncConf from "./pacemaker/corosync.conf" with { type: "text" };
import pacemakerInstall from "./pacemaker/install" with { type: "text" };
import pacemakerFacts from "./pacemaker/platform.yaml" with { type: "text" };
import pacemakerResources from "./pacemaker/resources.cib" with { type: "text" };
import pacemakerTest from "./pacemaker/tests/pacemaker-test" with { type: "text" };
import slurmCheck from "./slurm/check" with { type: "text" };
import slurmInstall from "./slurm/install" with { type: "text" };
import slurmFacts from "./slurm/platform.yaml" with { type: "text" };
import slurmWebService from "./slurm/slurm-web.service" with { type: "text" };
import slurmConf from "./slurm/slurm.conf" with { type: "text" };
import slurmTest from "./slurm/tests/slurm-test" with { type: "text" };
import slurmWebPy from "./slurm/web.py" with { type: "text" };
import swarmCheck from "./swarm/check" with { type: "text" };
import swarmInstall from "./swarm/install" with { type: "text" };
import swarmFacts from "./swarm/platform.yaml" with { type: "text" };
import swarmTokensService from "./swarm/swarm-tokens.service" with { type: "text" };
import swarmTest from "./swarm/tests/swarm-test" with { type: "text" };

/** A file of a platform folder. */
export interface ExampleFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** 0o644, or 0o755 for a program. */
  readonly mode: number;
  readonly text: string;
}

/** Scripts are programs. A module has no file modes, so their first line decides. */
const filesOf = (texts: Readonly<Record<string, string>>): readonly ExampleFile[] =>
  Object.entries(texts).map(([path, text]) => ({
    path,
    mode: text.startsWith("#!") ? 0o755 : 0o644,
    text,
  }));

/** Bun's types make anything of a YAML file, but with `type: "text"` it is one. */
const text = (imported: unknown): string => String(imported);

/** Every file of the folders beside this module. */
export const examples: Readonly<Record<ExampleName, readonly ExampleFile[]>> = {
  bare: filesOf({
    check: bareCheck,
    install: bareInstall,
    "platform.yaml": text(bareFacts),
  }),
  etcd: filesOf({
    check: etcdCheck,
    install: etcdInstall,
    "platform.yaml": text(etcdFacts),
    "tests/etcd-test": etcdTest,
    upgrade: etcdUpgrade,
  }),
  pacemaker: filesOf({
    check: pacemakerCheck,
    "corosync.conf": pacemakerCorosyncConf,
    install: pacemakerInstall,
    "platform.yaml": text(pacemakerFacts),
    "resources.cib": pacemakerResources,
    "tests/pacemaker-test": pacemakerTest,
  }),
  slurm: filesOf({
    check: slurmCheck,
    install: slurmInstall,
    "platform.yaml": text(slurmFacts),
    "slurm-web.service": slurmWebService,
    "slurm.conf": slurmConf,
    "tests/slurm-test": slurmTest,
    "web.py": slurmWebPy,
  }),
  swarm: filesOf({
    check: swarmCheck,
    install: swarmInstall,
    "platform.yaml": text(swarmFacts),
    "swarm-tokens.service": swarmTokensService,
    "tests/swarm-test": swarmTest,
  }),
};

/** A row of the `examples` command. */
export interface ListedExample extends Pick<PlatformFacts, "name" | "version"> {
  readonly description: string;
  /** How many of them a cluster has by default. */
  readonly nodes: {
    readonly masters: number;
    readonly agents: number;
    readonly publicAgents: number;
  };
}

/** The rows of a table, with a head, and the same as data. */
export async function listExamples() {
  const listed = await Promise.all(exampleNames.map(listExample));
  const head = ["NAME", "VERSION", "MASTERS", "AGENTS", "PUBLIC AGENTS", "DESCRIPTION"];
  const rows = listed.map(({ name, version, description, nodes }) => [
    name,
    version,
    ...[nodes.masters, nodes.agents, nodes.publicAgents].map(String),
    description,
  ]);
  return { rows: [head, ...rows], examples: listed };
}

async function listExample(example: ExampleName): Promise<ListedExample> {
  const platform = await platformFolderOf(example, examples[example]);
  if (platform.problems !== undefined) throw new TypeError(platform.problems.join("; "));
  const { name, version, description = "", nodes } = platform.value.facts;
  const usual = (role: Role): number => nodes[role].default ?? 1;
  return {
    name,
    version,
    description,
    nodes: {
      masters: usual("master"),
      agents: usual("agent"),
      publicAgents: usual("public_agent"),
    },
  };
}

/** Writes the folder of an example, which must be new or empty. Throws `bad-usage` if it isn't, or can't be written. */
export async function writeExample(name: ExampleName, folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw notWritten(folder, "it is not empty", undefined);
    await writeFiles(examples[name], folder);
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    throw isDiskFull(error)
      ? cannotWrite(folder, error)
      : notWritten(folder, systemReason(error), error);
  }
}

/**
 * Writes all files, or leaves none. Another command may write into the folder at the same time:
 * what is not from here stays.
 */
async function writeFiles(files: readonly ExampleFile[], folder: string): Promise<void> {
  const created: string[] = [];
  try {
    for (const { path: name, text: contents, mode } of files) {
      const path = join(folder, name);
      const parent = await mkdir(dirname(path), { recursive: true });
      if (parent !== undefined) created.push(parent);
      await using file = await open(path, "wx");
      created.push(path);
      await file.writeFile(contents);
      if (mode === 0o755) await file.chmod(mode);
    }
  } catch (error) {
    for (const path of created.toReversed())
      await rm(path).catch(async () => rmdir(path).catch(() => {}));
    throw error;
  }
}

const notWritten = (folder: string, reason: string, cause: unknown): ClusterError =>
  new ClusterError("bad-usage", `Cannot write the example to ${folder}: ${reason}.`, {
    hint: "Pass a folder that does not exist yet, or an empty one that you may write to.",
    facts: { folder },
    cause,
  });
