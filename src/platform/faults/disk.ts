import { faultRow, folderOption, unitOption } from "./fault-kind.ts";
import { numbersOf, range } from "./observed.ts";

/** ext4 reserves 16 MiB that no program can write. */
const slackBytes = 32 * 2 ** 20;

export const disk = faultRow({
  summary: "fills a file system",
  script: async () => import("./disk.sh", { with: { type: "text" } }),
  options: {
    /** A folder of the file system, which must be a tmpfs on containers. */
    folder: folderOption({ flag: "--fill", summary: "a folder of the file system to fill" }),
    /** How much stays free; default: 0. */
    leaveBytes: unitOption(
      {
        flag: "--leave",
        placeholder: "<size>",
        summary: "how much stays free, such as 0, 64K, 10M or 1G",
        defaultText: "0",
      },
      {
        shape: /^(\d{1,15})([KMG]?)$/,
        units: " KMG",
        step: 1024,
        what: "a size such as 0, 64K, 10M or 1G",
      },
      { from: 0, to: 2 ** 50, expected: "from 0 to 2^50 bytes" },
    ),
  },
  needs: ["folder"],
  takesNodes: true,
  explains: ["full-disk", "failed-unit"],
  plan({ nodes = [], folder = "", leaveBytes = 0 }, { find, isContainer }) {
    const chosen = find(nodes);
    const values = { FILL: folder, LEAVE: leaveBytes, SHARED: isContainer ? chosen.length : "" };
    return {
      description: `${folder} filled, ${leaveBytes} bytes left,`,
      parts: chosen.map((node) => ({ node, values, measure: { FILL: folder } })),
    };
  },
  state: (observed) =>
    `${range(numbersOf(observed, "free"), (bytes) => (bytes / 1e6).toFixed(1))} MB are free`,
  shows: ({ leaveBytes = 0 }, _before, after) =>
    numbersOf(after, "free").every((bytes) => bytes <= leaveBytes + slackBytes),
});
