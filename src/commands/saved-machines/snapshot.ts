import type { Backend, SnapshotRecord, BackendKind } from "../../backend/contract.ts";
import { defineCommand, type Context } from "../../cli/command.ts";
import { argument, BadValue, flag } from "../../cli/options/option.ts";
import { choice, outputFormat, value, verbose } from "../../cli/options/value-types.ts";
import { snapshotNameProblem } from "../../model/parse-values.ts";
import { placeOptions } from "../backend-options.ts";
import { clusterId } from "../options.ts";

export const snapshotCommand = (kind: BackendKind) =>
  defineCommand({
    name: "snapshot",
    summary: "Save and restore snapshots of a cluster",
    description: `${kind.parts.snapshots ?? ""} \`list\` shows the snapshots of a cluster and the disk space that each uses.`,
    positionals: {
      action: argument(choice(["create", "list", "restore", "delete"]), {
        name: "ACTION",
        summary: "What to do: create, list, restore or delete",
        required: true,
      }),
      name: argument(value(parseName), {
        name: "NAME",
        summary: "The snapshot's name; not for `list`",
        completeWith: ["snapshot", "--quiet", "list"],
      }),
    },
    options: {
      clusterId,
      ...placeOptions(kind),
      quiet: flag({ flag: "--quiet", short: "-q", summary: "With `list`, print only the names, one per line" }),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "snapshot create installed", summary: "Save the cluster `default` as the snapshot `installed`" },
      { words: "snapshot restore installed", summary: "Restore the cluster from that snapshot" },
      { words: "snapshot list -c nightly", summary: "Show the snapshots of the cluster `nightly`" },
    ],
    check: ({ action, name }, problems) => {
      if (action === "list" && name !== undefined) problems.add("NAME: list takes no name");
      if (action !== undefined && action !== "list" && name === undefined) problems.add(`NAME: required by ${action}`);
    },
    run: async (input, context) => {
      const backend = await kind.open(input, context, context.signal);
      const { action, name = "" } = input;
      if (action === "list") return await list(backend, input, context);
      await act(backend, { action, name, clusterId: input.clusterId }, context);
      context.output.result({ text: name, data: { snapshot: name } });
    },
  });

interface Act {
  readonly action: "create" | "restore" | "delete";
  readonly name: string;
  readonly clusterId: string;
}

async function act(backend: Backend<unknown>, { action, ...given }: Act, context: Context): Promise<void> {
  const { createSnapshot, deleteSnapshot, restoreSnapshot } = await import("../../cluster/snapshots.ts");
  switch (action) {
    case "create":
      return await createSnapshot(backend, given, context.signal);
    case "delete":
      return await deleteSnapshot(backend, given, context.signal);
    case "restore":
      await restoreSnapshot(backend, given, context, context.signal);
      if (backend.snapshots?.holdsMemory === true) return;
      context.progress.note(`The nodes boot. Next: ${context.programName} wait --cluster-id ${given.clusterId}`);
  }
}

async function list(
  backend: Backend<unknown>,
  { clusterId: id, quiet }: { readonly clusterId: string; readonly quiet: boolean },
  { output, clock, columns, progress, signal }: Context,
): Promise<void> {
  const [{ listSnapshots }, { table }, { momentText }] = await Promise.all([
    import("../../cluster/snapshots.ts"),
    import("../../cli/layout.ts"),
    import("../../system/amounts.ts"),
  ]);
  const snapshots = await listSnapshots(backend, id, signal);
  if (snapshots.length === 0) progress.note(`Cluster "${id}" has no snapshots.`);
  const rows = quiet
    ? snapshots.map(({ name }) => [name])
    : [
        ["NAME", "CREATED", "SIZE", "STATE"],
        ...snapshots.map((each) => row(each, (moment) => momentText(moment, clock.now()))),
      ];
  output.result({
    text: snapshots.length === 0 ? "" : table(rows, columns),
    data: {
      snapshots: snapshots.map(({ createdAt, ...rest }) => ({ ...rest, createdAt: createdAt?.toISOString() })),
    },
  });
}

const row = (
  { name, createdAt, sizeBytes, isComplete }: SnapshotRecord,
  shown: (moment: Date) => string,
): readonly string[] => [
  name,
  createdAt === undefined ? "–" : shown(createdAt),
  `${Math.ceil(sizeBytes / 1e6)} MB`,
  isComplete ? "complete" : "incomplete",
];

function parseName(given: string): string {
  const problem = snapshotNameProblem(given);
  if (problem !== undefined) throw new BadValue(problem);
  return given;
}
