/** What lines of logs mean, by their words. */
import type { Noticeable } from "../../platform/faults/fault-kind.ts";
import type { LogLine } from "../logs/log-lines.ts";

interface Sign {
  readonly id: Noticeable;
  readonly what: string;
  /** Takes linear time. */
  readonly shape: RegExp;
  /** The programs whose lines in a journal say so while a command runs. Absent: none. */
  readonly by?: ReadonlySet<string>;
  /** Other logs that may say so. Absent: all logs, also by other programs, which quote such lines. */
  readonly alsoIn?: RegExp;
  /** Selects such lines on a node: a POSIX extended regular expression that ignores case. `shape` decides. */
  readonly words?: string;
}

/** The first that a line shows is what it means. */
export const signs: readonly Sign[] = [
  {
    id: "oom",
    what: "out of memory",
    shape:
      /out of memory(?: \(oom_kill_allocating_task\))?: kill|oom-kill:|invoked oom-killer|killed by the OOM killer|result 'oom-kill'/i,
    by: new Set(["kernel", "systemd", "systemd-oomd"]),
    words:
      "out of memory( [(]oom_kill_allocating_task[)])?: kill|by the oom killer|result 'oom-kill'",
  },
  {
    id: "kernel-error",
    what: "kernel error",
    // A program's own has no comma or colon: "traps: app[7] general protection fault ip:…".
    shape: /kernel BUG at|\bBUG: |\bOops: |general protection fault[,:]|Kernel panic/,
    by: new Set(["kernel"]),
    alsoIn: /^console/,
    words: "BUG at|BUG: |Oops: |general protection fault|kernel panic",
  },
  {
    id: "core-dump",
    what: "core dump",
    shape: /dumped core|core dumped|code=dumped/,
    by: new Set(["kernel", "systemd", "systemd-coredump"]),
    words: "dumped core|core dumped|code=dumped",
  },
  { id: "full-disk", what: "full disk", shape: /no space left on device|\bENOSPC\b/i },
  {
    id: "clock-jump",
    what: "clock jump",
    shape: /Time has been changed|clock (?:has )?jumped|Time jumped (?:for|back)ward/i,
  },
  {
    id: "failed-unit",
    what: "failed unit",
    shape:
      /\.(?:service|mount|scope|socket|timer): Failed with result|entered failed state|\.service: Main process exited, code=(?:killed|dumped)/,
    by: new Set(["systemd"]),
    words: "failed with result|entered failed state|main process exited, code=(killed|dumped)",
  },
  {
    id: "reboot",
    what: "restart of the node",
    shape: /^-- (?:Reboot|Boot [0-9a-f]{8})/,
  },
];

export const signOf = ({ unit, text }: Pick<LogLine, "unit" | "text">): Sign | undefined =>
  signs.find(
    ({ shape, by, alsoIn }) =>
      (alsoIn === undefined || by?.has(unit) === true || alsoIn.test(unit)) && shape.test(text),
  );

const errorShape =
  /\b(?:error|errors|fatal|panic|failed|failure|critical|traceback|exception|segfault|refused|denied|unreachable|split.?brain)\b|\b(?:lost|no|without|loses) (?:the |a )?(?:leader|quorum|majority)\b/i;
const harmless = /\b(?:0|no) (?:error|failure)s?\b|error[-_]log|errors?[=:] ?(?:0|none|null)\b/i;

export const isError = (text: string): boolean => errorShape.test(text) && !harmless.test(text);
