import type { Mutant } from "./find-mutants.ts";

export interface Verdict {
  readonly mutant: Mutant;
  readonly by: "types" | "unit" | "integration" | "time limit" | "nothing";
  /** Which test file killed it, or that none executes the line. */
  readonly note: string;
}

/** The layer that a file belongs to: `cli`, `backend/vm`. */
export function layerOf(path: string): string {
  const [, layer = "", inner = "", ...rest] = path.split("/");
  return layer === "backend" && rest.length > 0 ? `${layer}/${inner}` : layer;
}

/** `src/cli/a.ts:12  < → <=` */
export const describeMutant = ({ path, line, before, after }: Mutant): string =>
  `${path}:${line}  ${oneLine(before)} → ${oneLine(after)}`;

const oneLine = (text: string): string => {
  const joined = text.replaceAll(/\s+/g, " ");
  return joined.length > 60 ? `${joined.slice(0, 59)}…` : joined;
};

const killers = ["types", "unit", "integration", "time limit"] as const;

/** A table in Markdown, then the survivors. */
export function renderReport(verdicts: readonly Verdict[]): string {
  const layers = [...new Set(verdicts.map(({ mutant }) => layerOf(mutant.path)))].toSorted();
  const rows = [...layers, "all"].map((layer) => {
    const own = verdicts.filter(({ mutant }) => layer === "all" || layerOf(mutant.path) === layer);
    const counts = [...killers, "nothing"].map(
      (by) => own.filter((verdict) => verdict.by === by).length,
    );
    const killed = own.filter(({ by }) => by !== "nothing").length;
    return `| ${[layer, own.length, ...counts, `${Math.round((100 * killed) / own.length)} %`].join(" | ")} |`;
  });
  const survivors = verdicts.filter(({ by }) => by === "nothing");
  return [
    `| layer | mutants | ${killers.join(" | ")} | survived | killed |`,
    `|${" --- |".repeat(killers.length + 4)}`,
    ...rows,
    ...(survivors.length > 0 ? ["", "Survived:"] : []),
    ...survivors.map(({ mutant, note }) => `- ${describeMutant(mutant)}  (${note})`),
  ].join("\n");
}
