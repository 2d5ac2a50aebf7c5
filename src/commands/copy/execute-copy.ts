import { basename, resolve } from "node:path";
import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { openMaskedConnections } from "../../cluster/connections.ts";
import { parseSendRequest, relativePathProblem, sendFiles } from "../../cluster/copy/send-files.ts";
import { type FetchRequest, checkTarget, fetchFile, warnOfShrunk } from "../../cluster/fetch.ts";
import {
  findCluster,
  findNode,
  findNodes,
  nodeSelectorProblem,
  warnOfGoneNodes,
} from "../../cluster/find-cluster.ts";
import { inFolder } from "../../cluster/run-on-nodes.ts";
import { ClusterError, messageOf, assertExpected } from "../../errors.ts";
import { type Checked, accepted, problem } from "../../model/checked.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeGroups,
  nodeReference,
} from "../../model/cluster-record.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import { numbered } from "../../system/amounts.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Unpacked } from "../../system/files/read-tar.ts";
import type { Progress } from "../../system/runtime.ts";
import type { JsonResults } from "../json-results.ts";

/** A path on nodes. */
interface Remote {
  readonly selector: string;
  readonly path: string;
}

/** What is copied between this computer and one node, in order. */
interface Task {
  readonly node: NodeRecord;
  readonly title: string;
  readonly work: (
    source: { readonly connection: Connection; readonly node: string },
    signal: AbortSignal,
  ) => Promise<Unpacked>;
}

const nodesAtOnce = 64;

export async function executeCopy(
  kind: BackendKind,
  input: Readonly<Record<string, unknown>> & {
    readonly clusterId: string;
    readonly paths: readonly string[];
  },
  context: Context,
): Promise<void> {
  const { progress, signal } = context;
  const plan = accepted(await planCopy(kind, input.paths, context));
  const backend = await kind.open(context, input);
  const cluster = await findCluster(backend, input.clusterId, signal);
  const tasks = await plan(cluster);
  const selectors = input.paths.flatMap((path) => remoteOf(path, kind.machineId)?.selector ?? []);
  warnOfGoneNodes(cluster, selectors, context);
  await using connections = openMaskedConnections(cluster, context);
  const failures: ClusterError[] = [];
  const copyAll = async ({ node, tasks: own }: NodeTasks) => {
    const reference = nodeReference(node);
    const copied = { reference, files: 0, bytes: 0 };
    try {
      findNode(cluster, node.id);
      for (const task of own) {
        using step = progress.start(task.title, reference);
        const connection = await connections.connect(node, signal);
        const { files, bytes } = await task.work({ connection, node: reference }, signal);
        step.done(`${numbered(files, "file")}, ${numbered(bytes, "byte")}`);
        copied.files += files;
        copied.bytes += bytes;
      }
    } catch (error) {
      assertExpected(error, signal);
      failures.push(error);
    }
    return copied;
  };
  const nodes = await mapConcurrently(ofEachNode(tasks), nodesAtOnce, copyAll, signal);
  const [first, ...others] = failures;
  for (const error of others) progress.warn(messageOf(error));
  if (first !== undefined) throw first;
  context.output.result({ text: "", data: { nodes } satisfies JsonResults["cp"] });
}

interface NodeTasks {
  readonly node: NodeRecord;
  readonly tasks: readonly Task[];
}

const ofEachNode = (tasks: readonly Task[]): readonly NodeTasks[] =>
  [...Map.groupBy(tasks, ({ node }) => node)].map(([node, own]) => ({ node, tasks: own }));

type Plan = (cluster: ClusterRecord) => Promise<readonly Task[]>;

/** Reads the paths, and lists the files to send, before the cluster is looked for. */
async function planCopy(
  { machineId }: BackendKind,
  paths: readonly string[],
  { cwd, progress, signal }: Context,
): Promise<Checked<Plan>> {
  const [sources, target = ""] = [paths.slice(0, -1), paths.at(-1)];
  if (sources.length === 0) return problem("PATH: a source and a target are required");
  const remotes = sources.flatMap((path) => remoteOf(path, machineId) ?? []);
  const to = remoteOf(target, machineId);
  if (to !== undefined) {
    if (remotes.length > 0)
      return problem("PATH: sources and target are all on nodes; one side must be here");
    const { value: request, problems } = await parseSendRequest(sources, to.path, { cwd, signal });
    if (problems !== undefined) return { problems };
    const plan: Plan = async (cluster) =>
      findNodes(cluster, [to.selector]).map((node) => ({
        node,
        title: "Send",
        work: async (destination, inner) => sendFiles(request, destination, inner),
      }));
    return { value: plan };
  }
  if (remotes.length < sources.length)
    return problem(
      remotes.length === 0
        ? "PATH: neither the sources nor the target are on nodes; write one side as NODE:PATH, such as master_0:/tmp/"
        : "PATH: sources are all on nodes, or all here",
    );
  if (sources.length > 1 && !target.endsWith("/"))
    return problem(`"${target}": for several sources, end it with /`);
  return {
    value: async (cluster) =>
      fetchTasks(
        cluster,
        { remotes, target: resolve(cwd, target) + (target.endsWith("/") ? "/" : "") },
        progress,
      ),
  };
}

/** `agents:/etc/f`; undefined: a path of this computer. */
function remoteOf(path: string, machineId: RegExp): Remote | undefined {
  const colon = path.indexOf(":");
  const selector = path.slice(0, Math.max(colon, 0));
  if (colon < 1 || nodeSelectorProblem(selector, machineId) !== undefined) return undefined;
  return { selector, path: path.slice(colon + 1) };
}

async function fetchTasks(
  cluster: ClusterRecord,
  { remotes, target }: { readonly remotes: readonly Remote[]; readonly target: string },
  progress: Progress,
): Promise<readonly Task[]> {
  const found = remotes.flatMap(({ selector, path }) =>
    findNodes(cluster, [selector]).map((node) => ({ node, path })),
  );
  const isOne = new Set(found.map(({ node }) => node)).size === 1;
  const hasFolders = !isOne || remotes.some(({ selector }) => Object.hasOwn(nodeGroups, selector));
  const locals = new Set<string>();
  const tasks: Task[] = [];
  for (const { node, path } of found) {
    const name = basename(path);
    if (!path.startsWith("/")) throw refused(relativePathProblem(path));
    if (["", ".", ".."].includes(name) || /\p{Cc}/u.test(path))
      throw refused(`"${path}" is not the path of a file or folder`);
    const local = target.endsWith("/") ? `${target}${name}` : target;
    const request: FetchRequest = {
      remote: path,
      local: hasFolders ? inFolder(local, nodeReference(node)) : local,
    };
    if (locals.has(request.local))
      throw refused(`two sources have the same local path, ${request.local}`);
    locals.add(request.local);
    const checked = accepted(await checkTarget(request));
    tasks.push({
      node,
      title: "Fetch",
      work: async (source, signal) => {
        const fetched = await fetchFile(checked, { ...source, settings: [] }, signal);
        warnOfShrunk(fetched, checked, progress);
        return fetched;
      },
    });
  }
  return tasks;
}

const refused = (reason: string): ClusterError =>
  new ClusterError("bad-usage", `PATH: ${reason}.`, {});
