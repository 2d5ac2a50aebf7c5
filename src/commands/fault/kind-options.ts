import type { BackendKind } from "../../backend/contract.ts";
import { type Option, type Options, flag, option } from "../../cli/options/option.ts";
import { namingFlags } from "../../cli/options/problems.ts";
import { byRule, text } from "../../cli/options/value-types.ts";
import type { FaultOption } from "../../platform/faults/fault-kind.ts";
import {
  type FaultKind,
  type FaultOptionValues,
  commonOptions,
  faultKinds,
  faultRows,
} from "../../platform/faults/fault-kinds.ts";
import { nodeNames, nodeSelector } from "../options.ts";

/** Replaces the names of options by their flags. */
const nameFaultFlags = namingFlags(() =>
  [...faultKinds.map((kind) => faultRows[kind].options), commonOptions].flatMap((options) =>
    Object.entries<FaultOption>(options).map(([name, each]) => [name, each.flag]),
  ),
);

/** The command line's options of a kind, or of every kind. */
const optionsOf = (owner: FaultKind | undefined, { machineId }: BackendKind): Options =>
  Object.fromEntries(
    Object.entries<FaultOption>(owner === undefined ? commonOptions : faultRows[owner].options).map(
      ([name, declared]) => {
        const { type, rule, isAllowed: _, expected: __, ...traits } = declared;
        const summary = nameFaultFlags(traits.summary);
        const own = { ...traits, summary: owner === undefined ? summary : `${owner}: ${summary}` };
        if (type === "switch") return [name, flag(own)];
        if (type === "nodes")
          return [
            name,
            option(nodeSelector(machineId), { ...own, completeWith: nodeNames, repeatable: true }),
          ];
        return [name, option<unknown, typeof own>(rule === undefined ? text : byRule(rule), own)];
      },
    ),
  );

/** The options of all kinds, as their rows declare them. */
export const kindOptions = (kind: BackendKind) =>
  Object.assign({}, ...[...faultKinds, undefined].map((each) => optionsOf(each, kind))) as {
    readonly [Name in keyof FaultOptionValues]-?: Option<FaultOptionValues[Name]>;
  };
