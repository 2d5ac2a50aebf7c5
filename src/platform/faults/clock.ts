import { refined, string } from "../../model/reader.ts";
import type { Rule } from "../../model/rule.ts";
import { durationRule, readDurationMs } from "../../system/amounts.ts";
import { type Observed, durationOption, faultRow } from "./fault-kind.ts";
import { range } from "./observed.ts";

const slackMs = 5_000;
const mostMs = 20 * 24 * 60 * 60_000;
/** deadline.sh reads it. */
const deadlineOffset = "/run/cluster-e2e-clock-offset";

function readOffset(text: string): number | undefined {
  const ms = readDurationMs(text.replace(/^[+-]/, ""));
  return ms !== undefined && text.startsWith("-") ? -ms : ms;
}

const offsetRule: Rule<number> = { ...durationRule, read: refined(string, readOffset) };

const aheadMs = ({ clockMs, hereMs }: Observed): number =>
  clockMs === undefined ? 0 : clockMs - hereMs;

export const clock = faultRow({
  summary: "sets a clock ahead or back",
  script: async () => import("./clock.sh", { with: { type: "text" } }),
  options: {
    /** Negative if the clock goes back. */
    offsetMs: {
      ...durationOption(
        { flag: "--offset", summary: "how far it is ahead (+1h) or behind (--offset=-30s)" },
        { from: -mostMs, to: mostMs, expected: "from 1 s to 20 days, ahead or behind" },
      ),
      placeholder: "<offset>",
      rule: offsetRule,
      isAllowed: (value: number) => Math.abs(value) >= 1000 && Math.abs(value) <= mostMs,
    },
  },
  needs: ["offsetMs"],
  takesNodes: true,
  notInContainers: "Containers have this computer's clock: it cannot be wrong on one of them.",
  explains: ["clock-jump", "failed-unit"],
  plan({ nodes = [], offsetMs = 0 }, { find }) {
    const chosen = find(nodes);
    const seconds = Math.round(offsetMs / 1000);
    const values = { OFFSET: seconds, DEADLINE_OFFSET: deadlineOffset };
    return {
      description: `clock ${offsetMs < 0 ? "" : "+"}${seconds} s`,
      parts: chosen.map((node) => ({ node, values })),
    };
  },
  random: (draw, _nodes, { offsetMs }) =>
    offsetMs === undefined ? { offsetMs: draw.between(5, 3600) * draw.among([-1000, 1000]) } : {},
  state(observed) {
    const ahead = observed.map(aheadMs);
    const isBehind = ahead.every((ms) => ms < 0);
    const off = ahead.map((ms) => (isBehind ? -ms : ms));
    return `the clock is ${range(off, (ms) => (ms / 1000).toFixed(1))} s ${isBehind ? "behind" : "ahead of"} this computer's`;
  },
  shows: ({ offsetMs = 0 }, before, after) =>
    after.every((each, index) => {
      const moved = aheadMs(each) - aheadMs(before[index] ?? each);
      return Math.abs(moved - offsetMs) <= slackMs;
    }),
});
