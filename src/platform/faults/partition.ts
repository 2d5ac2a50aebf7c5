import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { numbered } from "../../system/amounts.ts";
import type { NodeRecord } from "../../model/cluster-record.ts";
import {
  type FaultPart,
  type FaultPlan,
  faultRow,
  nodesOption,
  switchOption,
  wordOption,
} from "./fault-kind.ts";
import { listedNodes, privateAddressOf } from "./fault-nodes.ts";
import { answered, fastest } from "./observed.ts";

export const partition = faultRow({
  summary: "drops packets between nodes",
  script: async () => import("./partition.sh", { with: { type: "text" } }),
  options: {
    /** One side. */
    between: nodesOption({ flag: "--between", summary: "the nodes on one side" }),
    /** The other side; default: all other nodes. Nodes that are also in `between` count there only. */
    and: nodesOption({
      flag: "--and",
      summary: "the nodes on the other side",
      defaultText: "all other nodes",
    }),
    /** Whether only packets from `between` to `and` are dropped; default: false. */
    oneWay: switchOption({
      flag: "--one-way",
      summary: `drop only what goes from ${optionName("between")} to ${optionName("and")}`,
    }),
    /** How `between`, or all nodes, are cut off from each other; see the page. Not with `and` and `oneWay`. */
    shape: wordOption(
      {
        flag: "--shape",
        placeholder: "<halves|ring|bridge|isolate>",
        summary: `how the nodes of ${optionName("between")}, or all, are cut off from each other: two halves; a ring, in which each reaches its two neighbours; two halves with a node that reaches both; or each on its own`,
      },
      ["halves", "ring", "bridge", "isolate"],
    ),
  },
  needs: ["between", "shape"],
  takesNodes: false,
  explains: ["failed-unit"],
  problems: ({ shape, and = [], oneWay = false }) =>
    shape !== undefined && (and.length > 0 || oneWay)
      ? [
          `${optionName("shape")}: not together with ${optionName("and")} or ${optionName("oneWay")}`,
        ]
      : [],
  plan({ between = [], and = [], oneWay = false, shape }, { find }) {
    const first = find(between);
    if (shape !== undefined) return planShape(shape, first);
    const second = find(and).filter((node) => !first.includes(node));
    if (second.length === 0)
      throw new ClusterError(
        "bad-usage",
        `There is no other node to separate from ${listedNodes(first)}.`,
      );
    return {
      description: oneWay
        ? `nothing from ${listedNodes(first)} arrives at ${listedNodes(second)}`
        : `partition between ${listedNodes(first)} and ${listedNodes(second)}`,
      parts: [
        ...second.map((node) => dropping(node, first)),
        ...(oneWay ? [] : first.map((node) => dropping(node, second))),
      ],
    };
  },
  random: (draw, nodes, { oneWay }) => ({
    between: nodes,
    oneWay: oneWay === true || draw.between(1, 4) === 1,
  }),
  state: answered,
  shows: (_request, _before, after) => fastest(after) === undefined,
  canShow: (before) => fastest(before) !== undefined,
});

const dropping = (node: NodeRecord, from: readonly NodeRecord[]): FaultPart => ({
  node,
  values: { SOURCES: from.map(privateAddressOf).join(" ") },
  peers: from,
  links: from,
  measure: {},
});

/** Whether two of so many nodes, by their numbers, are cut off from each other. */
type Cut = (a: number, b: number, count: number) => boolean;

const cuts: Readonly<Record<string, Cut>> = {
  halves: (a, b, count) => a < Math.ceil(count / 2) !== b < Math.ceil(count / 2),
  ring: (a, b, count) => ![1, count - 1].includes(Math.abs(a - b)),
  bridge: (a, b, count) => {
    const middle = Math.floor(count / 2);
    return a !== middle && b !== middle && a < middle !== b < middle;
  },
  isolate: () => true,
};

function planShape(shape: string, nodes: readonly NodeRecord[]): FaultPlan {
  const isCut = cuts[shape] ?? (() => false);
  const parts = nodes.flatMap((node, index) => {
    const from = nodes.filter((_, other) => other !== index && isCut(index, other, nodes.length));
    return from.length === 0 ? [] : [dropping(node, from)];
  });
  if (parts.length > 0)
    return { description: `partition (${shape}) of ${listedNodes(nodes)}`, parts };
  throw new ClusterError(
    "bad-usage",
    `${numbered(nodes.length, "node")} cannot form this shape: ${shape}.`,
    {
      hint: "Two halves and isolated nodes need two nodes, a bridge three, a ring four.",
    },
  );
}
