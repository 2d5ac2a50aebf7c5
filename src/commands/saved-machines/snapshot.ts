import { runCommand } from "../../references.ts";
import type { Backend, LocalKind, LocalPart } from "../../backend/contract.ts";
import { defineCommand, type Context } from "../../cli/command.ts";
import { argument, flag, option, type ValuesOf } from "../../cli/options/option.ts";
import { byRule, choice, newFile, text } from "../../cli/options/value-types.ts";
import type { Problems } from "../../cli/options/problems.ts";
import type { SnapshotName } from "../../cluster/snapshots.ts";
import { snapshotNameRule } from "../../model/parse-values.ts";
import type { JsonResults } from "../json-results.ts";
import { clusterOptions } from "../options.ts";

/** Options for a file with a cluster. `when` names the action or option that writes it, such as "`save`". */
export const fileOptions = (when: string) => ({
  withoutBase: flag({
    flag: "--without-base",
    summary: `With ${when}, leave out the images of the nodes; the other computer must have them`,
  }),
  recipients: option(text, {
    flag: "--recipient",
    placeholder: "<public_key>",
    summary: `With ${when}, encrypt the file with age, which must be installed, for the owner of this key (age1… or ssh-…)`,
    repeatable: true,
  }),
});

const saveOptions = {
  ...fileOptions("`save`"),
  replace: flag({ flag: "--replace", summary: "With `save`, replace an existing file" }),
};

const saveArguments = {
  file: argument(newFile, { name: "FILE", summary: "With `save`, the file to write" }),
};

const examples = [
  {
    words: "snapshot create installed",
    summary: "Save the cluster `default` as the snapshot `installed`",
  },
  { words: "snapshot restore installed", summary: "Restore the cluster from that snapshot" },
  { words: "snapshot list -c nightly", summary: "Show the snapshots of the cluster `nightly`" },
  {
    words: "snapshot save installed cluster.zst",
    summary: "Write the snapshot to a file for other computers",
  },
];

const actions = ["create", "list", "restore", "delete", "save"] as const;

export const snapshotCommand = (kind: LocalKind) => {
  const { snapshots, files } = kind.local;
  const listText = "`list` shows the snapshots of a cluster and the disk space that each uses.";
  return defineCommand({
    name: "snapshot",
    summary: "Save and restore snapshots of a cluster",
    description: `${snapshots} ${listText}\n\n${files}`,
    positionals: {
      action: argument(choice(actions), {
        name: "ACTION",
        summary: `What to do: ${actions.slice(0, -1).join(", ")} or ${actions.at(-1) ?? ""}`,
        required: true,
      }),
      name: argument(byRule(snapshotNameRule), {
        name: "NAME",
        summary: "The snapshot's name; not for `list`",
        completeWith: ["snapshot", "--quiet", "list"],
      }),
      ...saveArguments,
    },
    options: clusterOptions(kind, {
      ...saveOptions,
      quiet: flag({
        flag: "--quiet",
        short: "-q",
        summary: "With `list`, print only the names, one per line",
      }),
    }),
    examples,
    check: (given, problems) => {
      const { action, name } = given;
      if (action === "list" && name !== undefined) problems.add("NAME: list takes no name");
      if (action !== undefined && action !== "list" && name === undefined)
        problems.add(`NAME: required by ${action}`);
      if (action === "save" && given.file === undefined) problems.add("FILE: required by save");
      if (action !== undefined && action !== "save") checkUnsaved(given, problems);
    },
    run: async (input, context) => {
      const backend = await kind.open(context, input);
      const { action, name = "" } = input;
      if (action === "list") return await list(backend, input, context);
      if (action === "save")
        return await save(backend, { ...input, name, file: input.file ?? "" }, context);
      await change(backend, { action, name, clusterId: input.clusterId }, context);
      context.output.result({
        text: name,
        data: { snapshot: name } satisfies JsonResults["snapshot"],
      });
    },
  });
};

type SaveInput = ValuesOf<typeof saveOptions & typeof saveArguments>;

function checkUnsaved({ file, replace, ...options }: Partial<SaveInput>, problems: Problems): void {
  const only = "only allowed with save";
  if (file !== undefined) problems.add(`FILE: ${only}`);
  checkFileOptions(options, only, problems);
  if (replace === true) problems.add(`--replace: ${only}`);
}

export function checkFileOptions(
  { withoutBase, recipients }: Partial<ValuesOf<ReturnType<typeof fileOptions>>>,
  only: string,
  problems: Problems,
): void {
  if (withoutBase === true) problems.add(`--without-base: ${only}`);
  if (recipients !== undefined && recipients.length > 0) problems.add(`--recipient: ${only}`);
}

async function save(
  backend: Backend<unknown>,
  { file, replace, ...input }: SaveInput & SnapshotName & { readonly file: string },
  context: Context,
): Promise<void> {
  const { saveToFile } = await import("./save-file.ts");
  const { clusterId: id, name, withoutBase, recipients } = input;
  await saveToFile(
    backend,
    { clusterId: id, name, path: file, replaces: replace, withoutBase, recipients },
    context,
  );
  context.output.result({
    text: file,
    data: { snapshot: name, file } satisfies JsonResults["snapshot"],
  });
}

async function change(
  backend: Backend<unknown> & { readonly local: LocalPart },
  { action, ...given }: SnapshotName & { readonly action: "create" | "restore" | "delete" },
  context: Context,
): Promise<void> {
  const { createSnapshot, deleteSnapshot, restoreSnapshot } =
    await import("../../cluster/snapshots.ts");
  switch (action) {
    case "create":
      return await createSnapshot(context, backend, given);
    case "delete":
      return await deleteSnapshot(backend, given, context.signal);
    case "restore":
      await restoreSnapshot(context, backend, given);
      if (backend.local.snapshots.holdsMemory) return;
      context.progress.note(
        `The nodes boot. ${runCommand("wait")} to find out when the platform is ready.`,
      );
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
        ...snapshots.map(({ name, createdAt, sizeBytes, isComplete }) => [
          name,
          createdAt === undefined ? "–" : momentText(createdAt, clock.now()),
          `${Math.ceil(sizeBytes / 1e6)} MB`,
          isComplete ? "complete" : "incomplete",
        ]),
      ];
  output.result({
    text: snapshots.length === 0 ? "" : table(rows, columns),
    data: { snapshots } satisfies JsonResults["snapshot"],
  });
}
