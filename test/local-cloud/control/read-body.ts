import { type Behaviour, usualBehaviour } from "../behaviour.ts";
import { answerChanges, type Fault, faultEffects } from "../endpoint/faults.ts";

const faultKeys = [
  "action",
  "when",
  "times",
  "forMs",
  "skip",
  "region",
  "match",
  "message",
  ...faultEffects,
];

/** Parses a fault. `times` is 1 by default. Rejects unknown keys: a test with a misspelt key would test nothing. */
export function readFault(body: unknown): Fault {
  const given = asRecord(body);
  refuseUnknown(given, faultKeys);
  const { action, when } = given;
  if (typeof action !== "string") throw new Error("a fault needs an action");
  if (when !== "before" && when !== "after" && when !== "launch")
    throw new Error("when is before, after or launch");
  if (when !== "launch" && !faultEffects.some((key) => key in given)) {
    throw new Error(`a fault needs one of ${faultEffects.join(", ")}`);
  }
  const { change } = given;
  if (change !== undefined && !answerChanges.some((known) => known === change))
    throw new Error(`change is one of ${answerChanges.join(", ")}`);
  return { times: 1, ...given, action, when };
}

export function readBehaviour(body: unknown): Partial<Behaviour> {
  const given = asRecord(body);
  refuseUnknown(given, Object.keys(usualBehaviour));
  return given;
}

export function readSkewMs(body: unknown): number {
  const { skewMs } = asRecord(body);
  if (typeof skewMs !== "number") throw new Error("skewMs must be a number");
  return skewMs;
}

function asRecord(body: unknown): Record<string, unknown> {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new Error("the body must be a JSON object");
  return { ...body };
}

function refuseUnknown(given: Record<string, unknown>, known: readonly string[]): void {
  const unknown = Object.keys(given).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    throw new Error(`unknown: ${unknown.join(", ")}; known: ${known.join(", ")}`);
}
