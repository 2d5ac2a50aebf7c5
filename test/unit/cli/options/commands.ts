import { defineCommand } from "../../../../src/cli/command.ts";
import {
  argument,
  BadValue,
  flag,
  option,
  wordsArgument,
} from "../../../../src/cli/options/option.ts";
import {
  anyText,
  choice,
  count,
  duration,
  outputFormat,
  path,
  text,
  value,
  verbose,
} from "../../../../src/cli/options/value-types.ts";

export const create = defineCommand({
  name: "create",
  summary: "",
  description: "",
  positionals: { url: argument(text, { name: "ARTIFACT_URL", summary: "", required: true }) },
  options: {
    variant: option(choice(["oss", "enterprise"]), {
      flag: "--variant",
      summary: "",
      required: true,
    }),
    masters: option(count(1, 9), {
      flag: "--masters",
      summary: "",
      default: 1,
    }),
    tags: option(value(parseTag), { flag: "--custom-tag", summary: "", repeatable: true }),
    license: option(path, { flag: "--license-key", summary: "", environment: "LICENSE" }),
    timeout: option(duration, { flag: "--timeout", summary: "", default: 60_000 }),
    password: option(anyText, {
      flag: "--password",
      summary: "",
      secret: true,
      environment: "PASSWORD",
    }),
    dryRun: flag({ flag: "--dry-run", summary: "" }),
    output: outputFormat(["text", "json"]),
    verbose,
  },
  examples: [],
  run: async () => {},
});

export const run = defineCommand({
  name: "run",
  summary: "",
  description: "",
  positionals: { words: wordsArgument("words", { name: "NODE_ARGS", summary: "" }) },
  options: { node: option(text, { flag: "--node", summary: "" }) },
  examples: [],
  run: async () => {},
});

async function parseTag(given: string): Promise<readonly string[]> {
  await Promise.resolve();
  if (!given.includes(":")) throw new BadValue(`"${given}" has no colon`);
  return given.split(":");
}
