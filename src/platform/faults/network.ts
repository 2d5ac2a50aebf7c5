import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type FaultValues,
  durationOption,
  faultRow,
  nodesOption,
  percentOption,
  unitOption,
} from "./fault-kind.ts";
import { listedNodes, privateAddressOf } from "./fault-nodes.ts";
import { fastest, roundTrip } from "./observed.ts";

const options = {
  /** One of these at least, besides `jitterMs`, `reorderPercent` and `towards`. */
  delayMs: durationOption(
    { flag: "--delay", summary: "how much later packets leave, such as 200ms" },
    { from: 1, to: 60_000, expected: "from 1 ms to 60 s" },
  ),
  lossPercent: percentOption({
    flag: "--loss",
    summary: "how many packets get lost, such as 5%",
  }),
  rateKbits: unitOption(
    {
      flag: "--rate",
      summary: "how much the node may send per second, such as 512kbit, 1mbit or 1gbit",
      suffix: "kbit",
    },
    {
      shape: /^(\d{1,9})([kmg])bit$/,
      units: "kmg",
      step: 1000,
      what: "a rate such as 512kbit, 1mbit or 1gbit",
    },
    { from: 1, to: 100_000_000, expected: "from 1 kbit to 100 gbit per second" },
  ),
  corruptPercent: percentOption({
    flag: "--corrupt",
    summary: "how many packets arrive damaged, such as 1%",
  }),
  duplicatePercent: percentOption({
    flag: "--duplicate",
    summary: "how many packets arrive twice, such as 1%",
  }),
  /** Needs `delayMs`. */
  jitterMs: durationOption(
    { flag: "--jitter", summary: "how much the delay varies, such as 50ms" },
    { from: 1, to: 60_000, expected: "from 1 ms to 60 s" },
  ),
  /** Needs `delayMs`. */
  reorderPercent: percentOption({
    flag: "--reorder",
    summary: "how many packets overtake those that are delayed, such as 25%",
  }),
  /** Only packets to these nodes; default: all. */
  towards: nodesOption({
    flag: "--towards",
    summary: "only packets to these nodes",
    defaultText: "all packets",
  }),
} as const;

export const network = faultRow({
  summary: "delays or loses what a node sends, or limits how much",
  script: async () => import("./network.sh", { with: { type: "text" } }),
  options,
  needs: ["delayMs", "lossPercent", "rateKbits", "corruptPercent", "duplicatePercent"],
  takesNodes: true,
  explains: ["failed-unit"],
  problems: ({ delayMs, jitterMs, reorderPercent }) =>
    delayMs === undefined
      ? [
          ...(jitterMs === undefined
            ? []
            : [`${optionName("jitterMs")}: needs ${optionName("delayMs")}`]),
          ...(reorderPercent === undefined
            ? []
            : [`${optionName("reorderPercent")}: needs ${optionName("delayMs")}`]),
        ]
      : [],
  plan(request, { find, nodes: all }) {
    const { nodes = [], towards = [] } = request;
    const netem = netemOf(request).flat().join(" ");
    const targets = towards.length === 0 ? all : find(towards);
    const path = towards.length === 0 ? [] : targets.map(privateAddressOf);
    const chosen = find(nodes);
    const alone = chosen.filter((node) => path.length > 0 && targets.every((to) => to === node));
    if (alone.length > 0)
      throw new ClusterError(
        "bad-usage",
        `${listedNodes(alone)} would send to no other node: ${optionName("towards")}.`,
      );
    const parts = chosen.map((node) => {
      const values = {
        ADDRESS: privateAddressOf(node),
        TOWARDS: path.join(" "),
      };
      const { ADDRESS } = values;
      const peers = path.length === 0 ? [] : targets;
      return {
        node,
        values: { ...values, NETEM: netem },
        peers,
        links: targets,
        measure: { ADDRESS },
      };
    });
    const where = path.length === 0 ? "" : ` towards ${listedNodes(targets)}`;
    return { description: `${netem}${where}`, parts };
  },
  random: (draw, _nodes, given) =>
    netemOf(given).length > 0
      ? {}
      : draw.among([
          { delayMs: draw.between(50, 500), jitterMs: draw.between(1, 50) },
          { lossPercent: draw.between(5, 40) },
        ]),
  pings: ({ delayMs = 0 }) => ({ limitSeconds: 2 + Math.ceil((delayMs * 2) / 1000), tries: 3 }),
  state: roundTrip,
  shows: (request, _before, after) =>
    (fastest(after) ?? Infinity) >= ((request.delayMs ?? 0) - (request.jitterMs ?? 0)) * 0.9 &&
    after.every(({ measured }) =>
      netemOf(request).every(([word = ""]) => measured.get("queue")?.includes(word)),
    ),
});

/** The words for tc, one list for each effect. */
function netemOf(request: FaultValues<typeof options>): readonly (readonly string[])[] {
  const { delayMs, jitterMs, lossPercent, rateKbits } = request;
  const { corruptPercent, duplicatePercent, reorderPercent } = request;
  const percent = (word: string, value: number | undefined): readonly string[][] =>
    value === undefined ? [] : [[word, `${value}%`]];
  const jitter = jitterMs === undefined ? [] : [`${jitterMs}ms`];
  return [
    ...(delayMs === undefined ? [] : [["delay", `${delayMs}ms`, ...jitter]]),
    ...percent("loss", lossPercent),
    ...percent("corrupt", corruptPercent),
    ...percent("duplicate", duplicatePercent),
    ...percent("reorder", reorderPercent),
    ...(rateKbits === undefined ? [] : [["rate", `${rateKbits}kbit`]]),
  ];
}
