/** A small program that uses every feature of cli/ and every way to end. The tests run it as a child process. */

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { type Program, defineCommand } from "../../../src/cli/command.ts";
import { completionCommand } from "../../../src/cli/completion-command.ts";
import { runProgram } from "../../../src/cli/main.ts";
import { argument, flag, option, wordsArgument } from "../../../src/cli/options/option.ts";
import {
  choice,
  count,
  duration,
  outputFormat,
  path,
  text,
  verbose,
} from "../../../src/cli/options/value-types.ts";
import { ClusterError } from "../../../src/errors.ts";
import { outside } from "../../../src/outside-text.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const output = outputFormat(["text", "json"]);
const password = option(text, { flag: "--password", summary: "A password", secret: true });

const since = option(choice(["always", "now"]), {
  flag: "--since",
  summary: "Who came when",
  default: "always",
  isRepeated: true,
});

export const greet = defineCommand({
  name: "greet",
  summary: "Greets people",
  description: "",
  positionals: {
    name: argument(text, {
      name: "NAME",
      summary: "Whom to greet",
      required: true,
      completeWith: ["people"],
    }),
  },
  options: {
    times: option(count(1, 9), {
      flag: "--times",
      summary: "How often",
      default: 1,
    }),
    tone: option(choice(["warm", "cold"]), { flag: "--tone", summary: "The tone", required: true }),
    since,
    license: option(path, { flag: "--license", summary: "A file", environment: "EXAMPLE_LICENSE" }),
    output,
    verbose,
  },
  examples: [{ words: "greet --tone warm Ada", summary: "Greets Ada" }],
  check: (given, problems) => {
    if (given.name === "Nobody") problems.add("NAME: nobody can't be greeted");
  },
  run: async (input, context) => {
    context.progress.detail(3, "as loud as can be");
    const line = `Hello ${input.name}, ${input.tone}`;
    context.output.result({
      text: Array(input.times).fill(line).join("\n"),
      data: { greeting: line, at: new Date(0) },
    });
  },
});

const people = defineCommand({
  name: "people",
  summary: "Lists who can be greeted",
  description: "",
  positionals: {},
  options: { since },
  examples: [],
  run: async (input, context) =>
    context.output.result({ text: input.since === "now" ? "Anna" : "Ada\nAlan\nGrace", data: {} }),
});

const fail = defineCommand({
  name: "fail",
  summary: "Fails in one of several ways",
  description: "",
  positionals: { way: argument(text, { name: "WAY", summary: "How", required: true }) },
  options: {
    output,
    verbose,
    password,
    remote: flag({ flag: "--remote", summary: "As after connecting" }),
  },
  examples: [],
  run: async (input, context) => {
    context.progress.detail(3, `the password is ${outside(String(input.password))}`);
    if (input.remote) context.failuresExitWith(255);
    const log = context.environment["EXAMPLE_LOG"];
    if (log !== undefined) context.progress.logTo(log);
    switch (input.way) {
      case "bug":
        throw new TypeError("x is not a function");
      case "status":
        return 37;
      case "uncaught":
        setTimeout(() => {
          throw new Error("nobody catches this");
        }, 10);
        await context.clock.sleep(60_000, context.signal);
        return 0;
      case "scope": {
        await using _scope = {
          [Symbol.asyncDispose]: () => Promise.reject(new Error("leaving failed as well")),
        };
        throw new ClusterError("cluster-exists", "It exists");
      }
      default:
        throw new ClusterError(
          "cluster-not-found",
          `No cluster has the id "x"; asked as ${outside(String(input.password))}`,
          {
            hint: "Create it first.",
            facts: { password: outside(String(input.password)), clusterId: "x" },
          },
        );
    }
  },
});

const big = defineCommand({
  name: "big",
  summary: "Prints a megabyte",
  description: "",
  positionals: {},
  options: { output },
  examples: [],
  run: async (_, context) => {
    context.output.result({
      text: "0123456789abcde\n".repeat(65_536),
      data: { text: "x".repeat(1_000_000) },
    });
  },
});

const hold = defineCommand({
  name: "hold",
  summary: "Works until it is interrupted, then cleans up",
  description: "",
  positionals: {},
  options: {
    output,
    verbose,
    cleanup: option(duration, {
      flag: "--cleanup",
      summary: "How long cleaning up takes",
      default: 50,
    }),
  },
  examples: [],
  run: async (input, context) => {
    const log = context.environment["EXAMPLE_LOG"];
    if (log !== undefined) context.progress.logTo(log);
    using _remains = context.onAbandon(
      () => "2 machines are left; they terminate automatically at 12:00",
    );
    using _step = context.progress.start("Work", "agent_0");
    context.progress.note("holding");
    try {
      await context.clock.sleep(60_000, context.signal);
    } finally {
      await context.clock.sleep(input.cleanup, neverAborted);
      context.progress.note("cleaned up");
    }
  },
});

const steps = defineCommand({
  name: "steps",
  summary: "Shows progress",
  description: "",
  positionals: {},
  options: {
    output,
    verbose,
    pause: option(duration, { flag: "--pause", summary: "Per step", default: 1 }),
  },
  examples: [],
  run: async (input, context) => {
    const pause = async (): Promise<void> => await context.clock.sleep(input.pause, context.signal);
    using launch = context.progress.start("Launch");
    for (const part of [1, 2, 3]) {
      launch.update(`${part} of 3`);
      await pause();
    }
    launch.done("3 machines");
    const nodes = ["master_0", "agent_0", "agent_1"].map((node) =>
      context.progress.start("Prepare", node),
    );
    for (const poll of [1, 1, 1, 2]) {
      context.progress.waiting(`agent_0: no answer yet (${poll})`);
      await pause();
    }
    context.progress.waiting("");
    for (const node of nodes) node.done();
    context.progress.detail(2, "RunInstances request-id 42");
    context.progress.warn("the price is unknown");
    context.output.result({
      text: "ready",
      data: { timings: context.progress.timings().map(({ title }) => title) },
    });
  },
});

const secret = defineCommand({
  name: "secret",
  summary: "Reads a secret and hands the rest of stdin to a child",
  description: "",
  positionals: {},
  options: {},
  examples: [],
  run: async (_, context) => {
    const given = await context.stdin.readSecret("Password: ", context.signal);
    const { stdout } = spawnSync("cat", { stdio: ["inherit", "pipe", "inherit"] });
    context.progress.note(`the secret is ${outside(given)}, ${given.length} long`);
    context.output.result({ text: `rest: ${stdout.toString()}`, data: {} });
  },
});

const ask = defineCommand({
  name: "ask",
  summary: "Asks for confirmation",
  description: "",
  positionals: {},
  options: {},
  examples: [],
  run: async (_, context) => {
    const isMeant = await context.stdin.confirm("Go on?", context.signal);
    context.output.result({ text: isMeant ? "going on" : "staying", data: {} });
  },
});

const child = defineCommand({
  name: "child",
  summary: "Runs a child",
  description: "",
  positionals: { words: wordsArgument("words", { name: "WORDS", summary: "The child's words" }) },
  options: { file: option(path, { flag: "--file", summary: "Where the words go" }) },
  examples: [],
  run: async (input, context) => {
    if (input.file !== undefined) writeFileSync(input.file, JSON.stringify(input.words));
    const [program = "", ...words] = input.words;
    const { stdout } = spawnSync(program, words);
    context.output.result({ text: stdout.toString(), data: {} });
  },
});

export const example: Program = {
  name: "example",
  summary: "An example of a program",
  commands: [greet, people, fail, big, hold, steps, secret, ask, child, completionCommand],
  licenses: async () => Promise.resolve("All of it is free.\n"),
};

if (import.meta.main) await runProgram(() => Promise.resolve(example), process);
