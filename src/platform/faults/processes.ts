import { optionName } from "../../references.ts";
import { numbered } from "../../system/amounts.ts";
import { type Observed, faultRow, textOption, wordOption } from "./fault-kind.ts";

/**
 * Without these, nobody could log in to heal a fault, and nothing would end it: each fault ends when a sleep does. From
 * OpenSSH 9.8 on, sshd-session and sshd-auth serve logins. Units of ours end a machine in time, and
 * give a copy its network.
 */
const vital =
  /^(?:cluster-e2e-.*|sleep|sh|sshd?(?:[@-].*)?|systemd(?:-.*)?|init|dbus(?:-.*)?|user@.*)(?:\.service)?$/;
const isVital = (name: string | undefined): boolean => name !== undefined && vital.test(name);

const pidOf = ({ measured }: Observed): string | undefined => measured.get("pid");
const wordOf = ({ measured }: Observed): string => measured.get("process") ?? "unknown";

export const processes = faultRow({
  summary: "kills or pauses a service or a program, or keeps it dead",
  script: async () => import("./processes.sh", { with: { type: "text" } }),
  options: {
    /** A service of systemd, such as `etcd`. This or `program`. */
    unit: textOption(
      { flag: "--unit", placeholder: "<service>", summary: "a service of systemd, such as etcd" },
      /^[A-Za-z0-9][\w@.:-]{0,120}$/,
      "the name of a service, such as etcd",
    ),
    /** The name of processes, as `ps -o comm` shows it. */
    program: textOption(
      {
        flag: "--name",
        placeholder: "<program>",
        summary: "the name of processes, as ps shows it",
      },
      /^[\w.:/@+-]{1,15}$/,
      "1 to 15 letters, digits and . : / @ + - _",
    ),
    /** `kill`: once, and the platform may bring it back. `stop`: paused. Default: dead until the end of the fault. */
    signal: wordOption(
      {
        flag: "--signal",
        placeholder: "<kill|stop>",
        summary: "kill it once, or pause it (stop)",
        defaultText: "it is kept dead",
      },
      ["kill", "stop"],
    ),
  },
  needs: ["unit", "program"],
  takesNodes: true,
  explains: ["failed-unit"],
  problems: ({ unit, program }) => [
    ...(unit !== undefined && program !== undefined
      ? [`${optionName("unit")}: not together with ${optionName("program")}`]
      : []),
    ...(isVital(unit) || isVital(program)
      ? [`process: without ${unit ?? program}, a node could not heal itself or end in time`]
      : []),
  ],
  plan({ nodes = [], unit, program = "", signal = "dead" }, { find }) {
    const name = unit === undefined || unit.endsWith(".service") ? unit : `${unit}.service`;
    const target = { UNIT: name ?? "", PROGRAM: program };
    const effect = { kill: "killed", stop: "paused" }[signal] ?? "dead";
    return {
      description: `${name ?? program} ${effect}`,
      parts: find(nodes).map((node) => ({
        node,
        values: { ...target, SIGNAL: signal },
        measure: target,
      })),
    };
  },
  random(draw, _nodes, given) {
    const signal = draw.among(["kill", "stop", undefined]);
    return given.signal === undefined ? { signal } : {};
  },
  state(observed, before) {
    const words = observed.map((each, index) => {
      const other = before?.[index];
      const isBack = other !== undefined && wordOf(each) === "runs" && pidOf(other) !== pidOf(each);
      return isBack
        ? "came back by itself"
        : ({ runs: "runs", paused: "is paused" }[wordOf(each)] ?? "is dead");
    });
    return [...Map.groupBy(words, (word) => word)]
      .map(([word, all]) => `it ${word} on ${numbered(all.length, "node")}`)
      .join(", ");
  },
  shows: ({ signal }, before, after) =>
    after.every((each, index) => {
      if (signal === "stop") return wordOf(each) === "paused";
      if (signal === "kill") return pidOf(each) !== pidOf(before[index] ?? each);
      return wordOf(each) === "dead";
    }),
});
