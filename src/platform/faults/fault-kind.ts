import type { NodeRecord } from "../../model/cluster-record.ts";
import { matching, refined } from "../../model/reader.ts";
import { type Rule, wordOf } from "../../model/rule.ts";
import { durationRule } from "../../system/amounts.ts";

/** What each of a kind's options accepts, by the type of its value. The library checks the type. */
type ValueTypes = {
  readonly nodes: readonly string[];
  readonly switch: boolean;
  readonly number: number;
  readonly text: string;
};

/** An option of one kind of fault, declared once for the command line and the library. */
export interface FaultOption<Type extends keyof ValueTypes = keyof ValueTypes> {
  readonly type: Type;
  readonly flag: `--${string}`;
  readonly summary: string;
  readonly placeholder?: `<${string}>`;
  readonly defaultText?: string;
  /** Of its text on the command line. Absent: any text. */
  readonly rule?: Rule<ValueTypes[Type]>;
  /** Follows a number to make a text that is read as that number. */
  readonly suffix?: string;
  isAllowed?(value: ValueTypes[Type]): boolean;
  /** Continues "must be …". */
  readonly expected?: string;
}

export type FaultOptions = Readonly<Record<string, FaultOption>>;

export type FaultValues<Options> = {
  readonly [Name in keyof Options]?: Options[Name] extends FaultOption<infer Type>
    ? ValueTypes[Type] | undefined
    : never;
};

/**
 * What every fault has. Nodes are named as everywhere: `agent_0`, an address, a machine id, or
 * `all`, `masters`, `agents`, `public_agents`.
 */
export interface FaultBase {
  /** After this time, the nodes heal the fault themselves. */
  readonly durationMs: number;
  /** The nodes that have the fault; not for `partition`. */
  readonly nodes?: readonly string[] | undefined;
}

/** A node's observation, and this computer's clock at that moment. */
export interface Observed {
  readonly clockMs: number | undefined;
  readonly hereMs: number;
  /** How long the fastest round trip to another node takes, by address; undefined: there was none. */
  readonly linksMs: ReadonlyMap<string, number | undefined>;
  /** What the kind's own function `measure` printed: outside text. `lack`: why the node can't have such a fault. */
  readonly measured: ReadonlyMap<string, string>;
}

/** Where a fault is planned. */
export interface FaultCluster {
  readonly isContainer: boolean;
  readonly nodes: readonly NodeRecord[];
  /** Those that the request names, or all that run. Throws if one does not run. */
  readonly find: (selectors: readonly string[]) => readonly NodeRecord[];
}

type ScriptValues = Readonly<Record<string, string | number>>;

/** One node's part of a fault. */
export interface FaultPart {
  readonly node: NodeRecord;
  /** For the kind's script. */
  readonly values: ScriptValues;
  /** Nodes without a part whose platform may fail for it as well, since they don't reach this one. */
  readonly peers?: readonly NodeRecord[] | undefined;
  /** Nodes to ping, to see whether the fault has an effect. */
  readonly links?: readonly NodeRecord[];
  /**
   * Values for the script's function `measure`, which prints lines `key=value`. Absent: there is
   * nothing to measure.
   */
  readonly measure?: ScriptValues;
}

export interface FaultPlan {
  readonly description: string;
  readonly parts: readonly FaultPart[];
}

/** Draws numbers: the same for the same seed. */
export interface Draw {
  /** A whole number, both ends included. */
  between(from: number, to: number): number;
  among<Value>(choices: readonly [Value, ...Value[]]): Value;
}

/** What a report or a watch notices, and a fault of some kind may have caused. */
export type Noticeable =
  | "oom"
  | "full-disk"
  | "failed-unit"
  | "reboot"
  | "clock-jump"
  | "kernel-error"
  | "core-dump"
  | "error-line"
  | "watch";

/**
 * All about one kind of fault: its row. Its script has the functions `begin`, `heal`, perhaps
 * `measure`, and perhaps `keep_doing`, whose processes end with the fault.
 */
export interface FaultRow<Options extends FaultOptions, Values> {
  /** Continues after the kind's name in the help. */
  readonly summary: string;
  /** Loaded late: every start of a program reads this row. */
  readonly script: () => Promise<{ readonly default: string }>;
  readonly options: Options;
  /** Each fault requires at least one of these options. */
  readonly needs: readonly string[];
  readonly takesNodes: boolean;
  /** Why containers can't have it. */
  readonly notInContainers?: string;
  /** Whether the nodes boot, during which nobody can log in. */
  readonly restarts?: boolean;
  readonly explains: readonly Noticeable[];
  /** Problems of options together. */
  problems?(request: Values): readonly string[];
  /** Throws `bad-usage` if nodes can't have it. */
  plan(request: FaultBase & Values, cluster: FaultCluster): FaultPlan;
  /** Values for a fault drawn at random on these nodes, besides those that are given. Absent: it has only those. */
  random?(draw: Draw, nodes: readonly string[], given: Values): Values;
  /** How to ping: a lost packet is sent again after a second. */
  pings?(request: Values): {
    readonly limitSeconds: number;
    readonly tries: number;
  };
  /** Describes what faults of this kind change, over all nodes; `before`: what the same nodes were like. */
  state(observed: readonly Observed[], before?: readonly Observed[]): string;
  shows(request: Values, before: readonly Observed[], after: readonly Observed[]): boolean;
  /** Whether a fault could show after these observations. Absent: always. */
  canShow?(before: readonly Observed[]): boolean;
}

export const faultRow = <const Options extends FaultOptions>(
  row: FaultRow<Options, FaultValues<Options>>,
): FaultRow<Options, FaultValues<Options>> => row;

type Own = Pick<FaultOption, "flag" | "summary" | "placeholder" | "defaultText">;
interface Range {
  readonly from: number;
  readonly to: number;
  /** Continues "must be …". */
  readonly expected: string;
}

export const nodesOption = (own: Own): FaultOption<"nodes"> => ({
  placeholder: "<node>",
  ...own,
  type: "nodes",
});

/** A path without the characters that have a meaning in tmpfiles.d. */
export const folderOption = (own: Own): FaultOption<"text"> =>
  textOption(
    { placeholder: "<folder>", ...own },
    /^\/[\w./+@:,-]{0,200}$/,
    "an absolute path of letters, digits and . / _ + @ : , -",
  );

export const switchOption = (own: Own): FaultOption<"switch"> => ({ ...own, type: "switch" });

const within = ({ from, to, expected }: Range) => ({
  type: "number" as const,
  isAllowed: (value: number) => value >= from && value <= to,
  expected,
});

export const durationOption = (own: Own, range: Range): FaultOption<"number"> => ({
  placeholder: "<duration>",
  ...own,
  ...within(range),
  rule: durationRule,
  suffix: "ms",
});

export const percentOption = (own: Own, range: Partial<Range> = {}): FaultOption<"number"> => ({
  placeholder: "<percent>",
  ...own,
  ...within({ from: 0.01, to: 100, expected: "from 0.01 to 100 percent", ...range }),
  rule: {
    read: refined(matching(/^\d{1,3}(?:\.\d{1,2})?%?$/), (text) => Number(text.replace("%", ""))),
    what: "a percentage such as 5% or 0.5%",
  },
  suffix: "%",
});

interface Unit {
  /** The number and the unit. */
  readonly shape: RegExp;
  /** Each is `step` times the one before. */
  readonly units: string;
  readonly step: number;
  readonly what: string;
}

export const unitOption = (
  own: Own & Pick<FaultOption, "suffix">,
  { shape, units, step, what }: Unit,
  range: Range,
): FaultOption<"number"> => ({
  ...own,
  ...within(range),
  rule: {
    read: refined(matching(shape), (text) => {
      const [, number, unit = ""] = shape.exec(text) ?? [];
      return Number(number) * step ** units.indexOf(unit);
    }),
    what,
  },
});

export const textOption = (own: Own, shape: RegExp, expected: string): FaultOption<"text"> => ({
  ...own,
  type: "text",
  isAllowed: (value) => shape.test(value),
  expected,
});

export const wordOption = (own: Own, words: readonly string[]): FaultOption<"text"> => ({
  ...own,
  type: "text",
  rule: wordOf(words),
  isAllowed: (value) => words.includes(value),
  expected: `one of ${words.join(", ")}`,
});
