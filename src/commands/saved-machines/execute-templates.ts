import type { Backend } from "../../backend/contract.ts";
import type { TemplateRecord } from "../../model/snapshot.ts";
import type { Context } from "../../cli/command.ts";
import { table } from "../../cli/layout.ts";
import { momentText } from "../../system/amounts.ts";

interface Asked {
  readonly action: "list" | "remove";
  readonly name: string | undefined;
}

export async function executeTemplates(
  { templates }: Backend<unknown>,
  { action, name }: Asked,
  { output, clock, columns, progress, signal }: Context,
): Promise<void> {
  if (templates === undefined) throw new TypeError("Only backends with templates have this command");
  if (action === "remove") {
    const removed = await templates.remove(name, signal);
    if (removed.length === 0) progress.note("There are no unused templates.");
    output.result({ text: removed.join("\n"), data: { removed } });
    return;
  }
  const all = await templates.list(signal);
  if (all.length === 0) progress.note("There are no templates.");
  const head = ["NAME", "CREATED", "SIZE", "USED BY", "MACHINE"];
  const rows = all.map((each) => row(each, clock.now()));
  output.result({
    text: all.length === 0 ? "" : table([head, ...rows], columns),
    data: { templates: all },
  });
}

const row = (
  { name, createdAt, sizeBytes, clusters, machine, problem }: TemplateRecord,
  nowMs: number,
): readonly string[] => [
  name,
  createdAt === undefined ? "–" : momentText(createdAt, nowMs),
  `${Math.ceil(sizeBytes / 1e6)} MB`,
  clusters.join(", ") || "–",
  machine === undefined ? "damaged" : `${machine}${problem === undefined ? "" : `; boots instead: ${problem}`}`,
];
