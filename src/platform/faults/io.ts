import { optionName } from "../../references.ts";
import {
  type Observed,
  durationOption,
  faultRow,
  folderOption,
  percentOption,
  switchOption,
} from "./fault-kind.ts";

const readOf = ({ measured }: Observed): string => measured.get("io") ?? "unknown";

/** For how many seconds the device works, and then fails, to fail for this share of the time. */
const turnsOf = (percent: number): readonly [up: number, down: number] =>
  percent <= 50
    ? [Math.round(100 / percent) - 1, 1]
    : percent === 100
      ? [0, 1]
      : [1, Math.round(percent / (100 - percent))];

function wordOf(observed: Observed): string {
  const read = readOf(observed);
  const word = /^\d{1,12}$/.test(read)
    ? `takes ${(Number(read) / 1000).toFixed(1)} ms`
    : ({ stalled: "does not end", failed: "fails" }[read] ?? "is not possible");
  const isReadOnly = observed.measured.get("mode") === "ro";
  return `a read ${word}${isReadOnly ? " (the file system is read-only)" : ""}`;
}

export const io = faultRow({
  summary: "stalls, slows down or breaks the device below a folder",
  script: async () => import("./io.sh", { with: { type: "text" } }),
  options: {
    /** A folder of a file system on a device of device mapper, which must not be the system's own. */
    ioFolder: folderOption({
      flag: "--folder",
      summary: "a folder of the device's file system",
    }),
    /** This, `slowMs` or `errorsPercent`. */
    stall: switchOption({ flag: "--stall", summary: "nothing is read or written until the end" }),
    slowMs: durationOption(
      { flag: "--slow", summary: "how much longer each read and write takes, such as 20ms" },
      { from: 1, to: 5_000, expected: "from 1 ms to 5 s" },
    ),
    /** The device fails for a second or more in turn. */
    errorsPercent: percentOption(
      { flag: "--errors", summary: "how much of the time reads and writes fail, such as 10%" },
      { from: 5, expected: "from 5 to 100 percent" },
    ),
  },
  needs: ["ioFolder"],
  takesNodes: true,
  notInContainers: "Containers have this computer's disks: they cannot fail for one of them.",
  explains: ["failed-unit", "kernel-error"],
  problems: ({ stall = false, slowMs, errorsPercent }) =>
    [stall, slowMs !== undefined, errorsPercent !== undefined].filter(Boolean).length !== 1
      ? [
          `io: needs one of ${optionName("stall")}, ${optionName("slowMs")} or ${optionName("errorsPercent")}`,
        ]
      : [],
  plan({ nodes = [], ioFolder = "", slowMs, errorsPercent }, { find }) {
    const chosen = find(nodes);
    const [UP, DOWN] = errorsPercent === undefined ? [0, 0] : turnsOf(errorsPercent);
    const isStalled = slowMs === undefined && errorsPercent === undefined;
    const how = isStalled
      ? "stalled"
      : slowMs === undefined
        ? `failing ${errorsPercent}% of the time`
        : `slower by ${slowMs} ms`;
    const values = { IO: ioFolder, STALL: isStalled ? "yes" : "", SLOW: slowMs ?? 0, UP, DOWN };
    return {
      description: `${ioFolder} ${how}`,
      parts: chosen.map((node) => ({ node, values, measure: { IO: ioFolder } })),
    };
  },
  random: (draw, _nodes, { stall, slowMs, errorsPercent }) =>
    stall === undefined && slowMs === undefined && errorsPercent === undefined
      ? draw.among([{ stall: true }, { slowMs: draw.between(10, 500) }])
      : {},
  state: (observed) => [...new Set(observed.map(wordOf))].join(", "),
  shows: ({ slowMs, errorsPercent }, _before, after) =>
    after.every((each) => {
      const [read, target] = [readOf(each), each.measured.get("target")];
      if (errorsPercent !== undefined) return target === "flakey" && read === "failed";
      if (slowMs === undefined) return target === "suspended" && read === "stalled";
      return target === "delay" && Number(read) >= slowMs * 900;
    }),
});
