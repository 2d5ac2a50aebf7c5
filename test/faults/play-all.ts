import { ArgumentWatch } from "./argument-watch.ts";
import type { CampaignFault } from "./campaign.ts";
import type { Verdict } from "./run-fault.ts";

interface Playing {
  readonly atOnce: number;
  readonly showsOutput: boolean;
  readonly print: (line: string) => void;
}

interface Totals {
  readonly survived: number;
  readonly machinesLeft: number;
  readonly secretsSeen: number;
  readonly skipped: number;
}

/**
 * Injects the faults, several at a time. Prints a line for each, and a last line for all. A fault without a verdict
 * counts as not survived.
 */
export async function playAll(
  faults: readonly CampaignFault[],
  { atOnce, showsOutput, print }: Playing,
  signal: AbortSignal,
): Promise<Totals> {
  using watch = new ArgumentWatch();
  const totals = { survived: 0, machinesLeft: 0, secretsSeen: 0, skipped: 0 };
  const pending = faults.values();
  const worker = async (): Promise<void> => {
    for (const fault of pending) {
      if (signal.aborted) return;
      if (fault.lack !== undefined) {
        print(`skipped                ${fault.name}: ${fault.lack}`);
        totals.skipped += 1;
        continue;
      }
      const startedMs = performance.now();
      const verdict = await fault.play(watch).catch(withoutVerdict);
      totals.survived += verdict.breaches.length === 0 ? 1 : 0;
      totals.machinesLeft += verdict.machinesLeft;
      totals.secretsSeen += verdict.secretsSeen;
      print(lineOf(fault, verdict, performance.now() - startedMs));
      if (showsOutput && verdict.breaches.length > 0)
        print(verdict.output.replaceAll(/^/gm, "    "));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, faults.length) }, worker));
  const { survived, machinesLeft, secretsSeen, skipped } = totals;
  print(
    `${survived} of ${faults.length - skipped} faults survived; machines left behind: ${machinesLeft}; secrets shown: ${secretsSeen}`,
  );
  return totals;
}

function withoutVerdict(error: unknown): Verdict {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    breaches: [`it could not be played: ${reason}`],
    machinesLeft: 0,
    secretsSeen: 0,
    output: "",
  };
}

function lineOf({ name }: CampaignFault, { breaches }: Verdict, tookMs: number): string {
  const outcome = breaches.length === 0 ? "survived    " : "NOT SURVIVED";
  const seconds = `${(tookMs / 1000).toFixed(1).padStart(6)} s`;
  return [`${outcome} ${seconds}  ${name}`, ...breaches].join("\n      ");
}
