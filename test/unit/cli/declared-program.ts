import { defineCommand } from "../../../src/cli/command.ts";
import type { Program } from "../../../src/cli/command.ts";
import { argument, flag, option, wordsArgument } from "../../../src/cli/options/option.ts";
import {
  choice,
  count,
  directoryPath,
  outputFormat,
  path,
  text,
  verbose,
} from "../../../src/cli/options/value-types.ts";

const id = option(text, {
  flag: "--cluster-id",
  short: "-c",
  summary: "The cluster's unique id",
  default: "default",
  completeWith: ["list", "--quiet"],
});

export const create = defineCommand({
  name: "create",
  summary: "Creates a cluster",
  description: "Takes a while; it's worth it.\n\nCosts: a [little] money, say 24 cents\\instance.",
  positionals: {
    url: argument(path, {
      name: "ARTIFACT_URL",
      summary: "Link to a release artifact",
      required: true,
    }),
    folder: argument(directoryPath, {
      name: "DIR",
      summary: "A folder",
      environment: "DIR",
      defaultText: "here",
    }),
  },
  options: {
    variant: option(choice(["oss", "enterprise"]), {
      flag: "--variant",
      summary: "The variant",
      required: true,
    }),
    masters: option(count(1, 9), {
      flag: "--masters",
      summary: "Master count",
      default: 1,
    }),
    publicAgents: option(count(0, 9), {
      flag: "--public-agents-with-a-rather-long-name",
      summary:
        "How many of those there are to be, told at such a length that the line has to be broken",
      default: 1,
    }),
    tags: option(text, {
      flag: "--tag",
      placeholder: "<KEY>:<VALUE>",
      summary: "Adds a tag",
      repeatable: true,
    }),
    dryRun: flag({ flag: "--dry-run", summary: "Touch nothing" }),
    id,
    output: outputFormat(["text", "json"]),
    verbose,
  },
  examples: [{ words: "create --variant oss ./it's.sh", summary: "The smallest one" }],
  run: async () => {},
});

const run = defineCommand({
  name: "run",
  summary: "Runs a command: on a node",
  description: "",
  positionals: { words: wordsArgument("words", { name: "NODE_ARGS", summary: "The command" }) },
  options: { id },
  examples: [],
  run: async () => {},
});

/** Has an option of every kind, and texts that need care when they are written down. */
export const declared: Program = {
  name: "cluster-x",
  summary: "Makes clusters",
  commands: [create, run],
  licenses: async () => Promise.resolve("All free\n"),
};
