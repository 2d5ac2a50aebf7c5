import { faultRow, percentOption } from "./fault-kind.ts";
import { numbersOf, range } from "./observed.ts";

/** How much less may be measured, of what was asked for: the platform's own use varies. */
const slackPercent = 10;
/** A busy computer gives a node less than its limit. */
const leastShare = 0.8;
/** Then a computer has nothing left to give. */
const busyPercent = 95;

const thousandths = (percent = 0): number => Math.round(percent * 10);

export const pressure = faultRow({
  summary: "keeps processors busy or fills memory, up to a share of what the node has",
  script: async () => import("./pressure.sh", { with: { type: "text" } }),
  options: {
    /** This, `memoryPercent` or both. */
    cpuPercent: percentOption(
      { flag: "--cpu", summary: "how much of the node's processors is used, such as 90%" },
      { from: 1, expected: "from 1 to 100 percent" },
    ),
    /** With what the node uses already. */
    memoryPercent: percentOption(
      { flag: "--memory", summary: "how much of the node's memory is in use then, such as 80%" },
      { from: 1, to: 95, expected: "from 1 to 95 percent" },
    ),
  },
  needs: ["cpuPercent", "memoryPercent"],
  takesNodes: true,
  explains: ["oom", "failed-unit"],
  plan({ nodes = [], cpuPercent, memoryPercent }, { find, isContainer }) {
    const chosen = find(nodes);
    const measure = { CPU: thousandths(cpuPercent), MEMORY: thousandths(memoryPercent) };
    const values = { ...measure, SHARED: isContainer ? chosen.length : "" };
    const parts = [
      ...(cpuPercent === undefined ? [] : [`${cpuPercent}% of the processors`]),
      ...(memoryPercent === undefined ? [] : [`${memoryPercent}% of the memory`]),
    ];
    return {
      description: `${parts.join(" and ")} used`,
      parts: chosen.map((node) => ({ node, values, measure })),
    };
  },
  random: (draw, _nodes, { cpuPercent, memoryPercent }) =>
    cpuPercent === undefined && memoryPercent === undefined
      ? draw.among([{ cpuPercent: draw.between(50, 95) }, { memoryPercent: draw.between(70, 90) }])
      : {},
  state(observed) {
    const shares = [
      ["cpu", "the processors"],
      ["memory", "the memory"],
    ].flatMap(([key = "", what]) =>
      observed.some(({ measured }) => measured.has(key))
        ? [`${range(numbersOf(observed, key), String)}% of ${what}`]
        : [],
    );
    const isFull = numbersOf(observed, "computer").some((percent) => percent >= busyPercent);
    return `${shares.join(" and ")} are used${isFull ? ", and other programs use the rest of the computer's" : ""}`;
  },
  shows: ({ cpuPercent = 0, memoryPercent = 0 }, _before, after) => {
    const computer = numbersOf(after, "computer");
    return (
      numbersOf(after, "memory").every((percent) => percent >= memoryPercent - slackPercent) &&
      numbersOf(after, "cpu").every(
        (percent, index) =>
          percent >= cpuPercent * leastShare || (computer[index] ?? 0) >= busyPercent,
      )
    );
  },
});
