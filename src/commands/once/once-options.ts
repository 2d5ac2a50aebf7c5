import { type ValuesOf, wordsArgument, flag, option } from "../../cli/options/option.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { count, directoryPath, value } from "../../cli/options/value-types.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { nodeGroups } from "../../model/cluster-record.ts";
import { clusterIdRule } from "../../model/parse-values.ts";
import { refusal } from "../../model/rule.ts";
import { optionName } from "../../references.ts";
import { createArguments } from "../create/create.ts";
import { createOptions, onceLifetimeOptions } from "../create/create-options.ts";
import {
  junit,
  junitFrom,
  laterFile,
  reportFile,
  skipHttpChecks,
  temporaryClusterId,
  timeout,
} from "../options.ts";
import { ignore, nodesOption, sessionOptions } from "../run/run.ts";
import { declaredIf, localFlags } from "../backend-options.ts";
import { checkFileOptions, fileOptions } from "../saved-machines/snapshot.ts";

export const onceArguments = {
  ...createArguments,
  words: wordsArgument("after-dashes", {
    name: "-- COMMAND",
    summary: "The command and its arguments, as for `run`",
  }),
};

const saveOptions = {
  saveOnFailure: option(value(laterFile, "file"), {
    flag: "--save-on-failure",
    placeholder: "<file>",
    summary:
      "File for the whole cluster as it stands when anything fails after its creation, with the processes of virtual machines; replaced if it exists",
  }),
  ...fileOptions("--save-on-failure"),
};

const cacheOptions = {
  cache: option(value(laterFile, "file"), {
    flag: "--cache",
    placeholder: "<file>",
    summary:
      "File for the cluster as it is when the platform is ready. If it holds the same platform, installed with the same options, the cluster is made from it and nothing is installed; another cluster that this option saved is replaced, and any other file is refused",
  }),
};

const chaos = option(
  value(async (given) => (await import("../fault/chaos-text.ts")).parseChaos(given)),
  {
    flag: "--chaos",
    placeholder: "<seed=7,…>",
    summary:
      "Begin faults at random while the command runs, with the options of `fault random` in one text, such as seed=7,every=30s,kinds=partition,process,unit=etcd; each shard has a seed of its own, which is higher by one",
  },
);

const shrink = option(count(1, 100), {
  flag: "--shrink",
  summary:
    "With --chaos: if the command fails, run it again up to this many times with fewer of the faults, each time on a new cluster, and print the smallest plan that still fails; with --from, each begins from the same state",
});

const mostShards = 32;

const shardOptions = {
  shards: option(count(1, mostShards), {
    flag: "--shards",
    summary:
      "With --from, the number of copies on which the command runs at once; it finds its number, from 1 on, in CLUSTER_SHARD, and how many there are in CLUSTER_SHARDS",
  }),
};

export const shardName = (number: number): string => `shard_${number}`;
export const shardClusterId = (id: string, number: number): string => `${id}-${number}`;

/**
 * The options of `create` and `run`, without those that make no sense if the command always waits
 * for, uses and removes the cluster.
 */
export function onceOptions(kind: BackendKind) {
  const {
    wait: _wait,
    dryRun: _dryRun,
    replace: _replace,
    output: _output,
    verbose,
    ...create
  } = createOptions(kind);
  return {
    ...create,
    ...onceLifetimeOptions(kind),
    keepOnFailure: flag({
      flag: "--keep-on-failure",
      summary: "Keep the cluster if anything fails, even the command",
    }),
    timeout: timeout("Time limit until the platform is ready; the command has none"),
    clusterId: temporaryClusterId,
    skipHttpChecks,
    ...sessionOptions,
    node: nodesOption(kind),
    logsDir: option(directoryPath, {
      flag: "--logs-dir",
      summary: "Folder for the logs after a failure; created if it does not exist",
      defaultText: "the cluster's state folder",
    }),
    ...declaredIf(kind.local !== undefined, { ...saveOptions, ...cacheOptions, ...shardOptions }),
    chaos,
    shrink,
    ignore,
    junit,
    report: reportFile,
    junitFrom,
    verbose,
  };
}

export type OnceInput = ValuesOf<ReturnType<typeof onceOptions> & typeof onceArguments>;

/**
 * Refuses options of a file if no file is written, one file for two purposes, and a cache that
 * could not be used or shared.
 */
export function checkSaving(
  kind: BackendKind,
  { saveOnFailure, junit: testReport, report, cache, from, sshKey, ...given }: Partial<OnceInput>,
  problems: Problems,
): void {
  const { junitFrom: results = [] } = given;
  if (saveOnFailure === undefined)
    checkFileOptions(given, "only allowed with --save-on-failure", problems);
  if (report === undefined && results.length > 0)
    problems.add("--junit-from: only allowed with --report");
  const taken = [...results, ...fetchedFiles(given)];
  for (const [name, path] of Object.entries({ junit: testReport, saveOnFailure, report, cache })) {
    if (path === undefined) continue;
    if (taken.includes(path))
      problems.add(`${optionName(name)}: another option names the same file`);
    taken.push(path);
  }
  if (cache === undefined) return;
  if (from !== undefined) problems.add("--cache: cannot be combined with --from");
  if (sshKey !== undefined)
    problems.add("--cache: the file would contain the key that --ssh-key names");
  const values = given as Readonly<Record<string, unknown>>;
  for (const [name, flagName] of localFlags(kind)) {
    const found = values[name];
    const isGiven = Array.isArray(found) ? found.length > 0 : found !== undefined;
    if (isGiven)
      problems.add(`--cache: cannot be combined with ${flagName}, which the file would lack`);
  }
}

/** Where the command's results go. Those of several nodes are in folders. */
function fetchedFiles({
  fetch = [],
  node: [node = "", ...others] = [],
}: Partial<Pick<OnceInput, "fetch" | "node">>): readonly string[] {
  const isAlone = others.length === 0 && !Object.hasOwn(nodeGroups, node);
  return isAlone ? fetch.map(({ local }) => local) : [];
}

/** Refuses shards if there is no snapshot to copy, and if a shard's id or files would be invalid. */
export async function checkShards(
  { shards, from, clusterId, fetch = [] }: Partial<OnceInput>,
  problems: Problems,
): Promise<void> {
  if (shards === undefined) return;
  if (from === undefined) problems.add("--shards: requires --from, a snapshot to copy");
  const shardId = shardClusterId(clusterId ?? "", shards);
  if (clusterId !== undefined && clusterIdRule.read(shardId) === undefined)
    problems.add(`--shards: ${refusal(clusterIdRule, shardId)}`);
  const [{ checkTarget }, { inFolder }] = await Promise.all([
    import("../../cluster/fetch.ts"),
    import("../../cluster/run-on-nodes.ts"),
  ]);
  for (const { remote, local } of fetch) {
    for (let number = 1; number <= shards; number += 1) {
      const target = await checkTarget({ remote, local: inFolder(local, shardName(number)) });
      for (const problem of target.problems ?? []) problems.add(`--fetch: ${problem}`);
    }
  }
}
