import { basename } from "node:path";
import { ClusterError, quoted } from "../../../errors.ts";
import { creationOfDirectory } from "../../../store/creation-folder.ts";
import { numbered } from "../../../system/amounts.ts";
import type { Clock, Environment } from "../../../system/runtime.ts";
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

export class VmTemplates implements Templates {
  readonly #store: { readonly folder: string; readonly clock: Clock };

  constructor({ environment, clock }: { readonly environment: Environment; readonly clock: Clock }) {
    this.#store = { folder: templatesFolder(environment), clock };
  }

  async list(_signal: AbortSignal): Promise<readonly TemplateRecord[]> {
    return (await listTemplates(this.#store.folder)).map(toRecord);
  }

  async remove(name: string | undefined, signal: AbortSignal): Promise<readonly string[]> {
    const templates = await listTemplates(this.#store.folder);
    const chosen = templates.filter((each) => (name === undefined ? each.users.length === 0 : each.name === name));
    if (name !== undefined && chosen.length === 0)
      throw new ClusterError("bad-usage", `There is no template ${quoted(name)}.`, {
        hint: "Run: cluster-vm templates list",
      });
    const removed: string[] = [];
    for (const each of chosen) if (await removeTemplate(this.#store, each.name, signal)) removed.push(each.name);
    if (name !== undefined && removed.length === 0)
      throw new ClusterError("bad-usage", `The template ${name} is in use.`, {
        hint: "Destroy the clusters that use it (see cluster-vm templates list), or wait until create has made it.",
      });
    // What is left of interrupted programs goes too.
    await limitTemplates(this.#store, Infinity, signal);
    return removed;
  }
}

const toRecord = ({ name, facts, sizeBytes, users }: StoredTemplate): TemplateRecord => ({
  name,
  machine: facts && machineText(facts.kind),
  createdAt: facts && new Date(facts.createdAt),
  sizeBytes,
  clusters: users.map((directory) => creationOfDirectory(directory)?.clusterId ?? basename(directory)).toSorted(),
  problem: facts?.problem,
});

const machineText = ({ image, memoryMegabytes, cpus, cpuModel, diskMegabytes, accelerator }: TemplateKind): string =>
  `${basename(image)}, ${memoryMegabytes} MB, ${numbered(cpus, "CPU")}${cpuModel === undefined ? "" : ` (${cpuModel})`}, disk ${diskMegabytes} MB, ${accelerator}`;
