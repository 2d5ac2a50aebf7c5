import { hardwareText } from "../hardware.ts";
import { basename } from "node:path";
import { ClusterError, quoted } from "../../../errors.ts";
import { creationOfDirectory } from "../../../store/creation-folder.ts";
import type { Runtime } from "../../../system/runtime.ts";
import type { TemplateRecord } from "../../../model/snapshot.ts";
import type { Templates } from "../../contract.ts";
import {
  type StoredTemplate,
  type TemplateKind,
  limitTemplates,
  listTemplates,
  removeTemplate,
  templatesFolder,
} from "./template-files.ts";

export function vmTemplates({
  environment,
  clock,
}: Pick<Runtime, "environment" | "clock">): Templates {
  const store = { folder: templatesFolder(environment), clock };
  return {
    list: async () => (await listTemplates(store.folder)).map(toRecord),
    remove: async (name, signal) => {
      const templates = await listTemplates(store.folder);
      const chosen = templates.filter((each) =>
        name === undefined ? each.users.length === 0 : each.name === name,
      );
      if (name !== undefined && chosen.length === 0)
        throw new ClusterError("bad-usage", `There is no template ${quoted(name)}.`, {
          hint: "Run: cluster-vm templates list",
        });
      const removed: string[] = [];
      for (const each of chosen)
        if (await removeTemplate(store, each.name, signal)) removed.push(each.name);
      if (name !== undefined && removed.length === 0)
        throw new ClusterError("bad-usage", `The template ${name} is in use.`, {
          hint: "Destroy the clusters that use it (see cluster-vm templates list), or wait until create has made it.",
        });
      // What is left of interrupted programs goes too.
      await limitTemplates(store, Infinity, signal);
      return removed;
    },
  };
}

const toRecord = ({ name, facts, sizeBytes, users }: StoredTemplate): TemplateRecord => ({
  name,
  machine: facts && machineText(facts.kind),
  createdAt: facts && new Date(facts.createdAt),
  sizeBytes,
  clusters: users
    .map((directory) => creationOfDirectory(directory)?.clusterId ?? basename(directory))
    .toSorted(),
  problem: facts?.problem,
});

const machineText = ({ image, diskMegabytes, accelerator, ...hardware }: TemplateKind): string =>
  `${basename(image)}, ${hardwareText(hardware).replace(" of memory", "")}, disk ${diskMegabytes} MB, ${accelerator}`;
