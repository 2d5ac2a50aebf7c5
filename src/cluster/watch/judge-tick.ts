/** What a look at a node's clock and counters means, compared with the one before. */
import type { Verdict } from "./judge-line.ts";

export interface Tick {
  /** The node's clock, in seconds since 1970. */
  readonly clock: number;
  /** The time of the boot by that clock lies between these. */
  readonly leastStart: number;
  readonly mostStart: number;
  /** OOM kills so far, perhaps also of other containers; `failures` rises too if any was in this one. */
  readonly kills: number;
  readonly failures: number;
}

const shape =
  /^(\d{1,11}\.\d{1,9}) (\d{1,11}(?:\.\d{1,9})?) (\d{1,11}(?:\.\d{1,9})?) (\d{1,9}) (\d{1,18})$/;
/** Clocks that are corrected slowly change less between two looks. */
const leastJump = 1;

export function readTick(text: string): Tick | undefined {
  if (!shape.test(text)) return undefined;
  const [clock = 0, before = 0, after = 0, kills = 0, failures = 0] = text.split(" ").map(Number);
  return { clock, leastStart: clock - after, mostStart: clock - before, kills, failures };
}

/**
 * What a look at the beginning of a container's boot would have seen. Where kills are the
 * computer's, those before the boot stay.
 */
export const tickOfBoot = (last: Tick): Tick => ({
  ...last,
  leastStart: -Infinity,
  mostStart: Infinity,
  kills: last.kills === last.failures ? 0 : last.kills,
  failures: 0,
});

export function judgeTick(
  now: Tick,
  last: Tick | undefined,
): readonly (Verdict & { readonly text: string })[] {
  if (last === undefined) return [];
  const forward = now.leastStart - last.mostStart;
  const back = last.leastStart - now.mostStart;
  const jump = Math.max(forward, back);
  const hasKilled = now.kills > last.kills && now.failures > last.failures;
  return [
    ...(jump < leastJump
      ? []
      : [
          {
            kind: "clock-jump" as const,
            what: "clock jump",
            subject: String(now.clock),
            text: `the node's clock was set ${forward > back ? "forward" : "back"} by ${jump.toFixed(1)} s`,
          },
        ]),
    ...(!hasKilled
      ? []
      : [
          {
            kind: "oom" as const,
            what: "out of memory",
            subject: "",
            text: "the kernel has killed at least one process for lack of memory",
          },
        ]),
  ];
}
