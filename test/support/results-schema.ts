import { readFileSync } from "node:fs";
import { join } from "node:path";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const file = join(import.meta.dir, "..", "..", "src", "commands", "results.schema.json");

const opened: { ajv?: Ajv2020 } = {};

/** The schema's definitions are named like the commands, except `error`. */
function validator(command: string) {
  const ajv = (opened.ajv ??= addFormats(new Ajv2020({ allErrors: true })).addSchema(
    JSON.parse(readFileSync(file, "utf8")) as object,
    "results",
  ));
  return ajv.getSchema(`results#/$defs/${command}`);
}

/** Throws if the command's `--output json` isn't as `results.schema.json` says. */
export function assertInSchema(command: string, printed: unknown): void {
  const isValid = validator(command);
  // An unknown command has an error only.
  if (isValid === undefined || isValid(printed) === true) return;
  const problems = (isValid.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${instancePath}: ${message ?? ""} ${JSON.stringify(params)}`,
  );
  throw new Error(
    `${command} printed what results.schema.json doesn't have:\n${problems.join("\n")}\n${JSON.stringify(printed)}`,
  );
}
