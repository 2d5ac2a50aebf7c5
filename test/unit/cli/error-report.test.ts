import { optionName } from "../../../src/references.ts";
import { expect, test } from "bun:test";
import { defineCommand, Interrupted } from "../../../src/cli/command.ts";
import { reportError } from "../../../src/cli/error-report.ts";
import { option } from "../../../src/cli/options/option.ts";
import { text as anyWord } from "../../../src/cli/options/value-types.ts";
import { ClusterError } from "../../../src/errors.ts";
import { unmarked } from "../../../src/outside-text.ts";

const wait = defineCommand({
  name: "wait",
  summary: "",
  description: "",
  positionals: {},
  options: {
    timeout: option(anyWord, { flag: "--timeout", summary: "" }),
    subnetId: option(anyWord, { flag: "--subnet", summary: "" }),
  },
  examples: [],
  run: async () => {},
});
const circumstances = {
  program: {
    name: "cluster-x",
    summary: "",
    licenses: async () => Promise.resolve(""),
    commands: [wait],
  },
  logPath: undefined,
};
const gone = new ClusterError("connection-failed", "agent_0 is gone", {
  hint: "Look.",
  facts: { node: "agent_0" },
});

test("an error is told with what to do, the log and its id", () => {
  expect(reportError(gone, { ...circumstances, logPath: "/logs/one" })).toMatchObject({
    exitCode: 1,
    text: "Error: agent_0 is gone\nLook.\nLog: /logs/one\n[connection-failed]",
    data: {
      id: "connection-failed",
      message: "agent_0 is gone",
      hint: "Look.",
      log: "/logs/one",
      facts: { node: "agent_0" },
    },
  });
});

test("an error without a hint has none", () => {
  const lost = reportError(new ClusterError("output-lost", "It is lost."), circumstances);
  expect(lost).toMatchObject({
    text: "Error: It is lost.\n[output-lost]",
    data: { hint: undefined, facts: {} },
  });
});

test("options are named by their flags, backquoted words stay", () => {
  const late = new ClusterError(
    "deadline-passed",
    `${optionName("subnetId")} and \`wait\` are late`,
    {
      hint: `Give ${optionName("timeout", "90m")} or more.`,
    },
  );
  const report = reportError(late, circumstances);
  expect(report.text).toBe(
    "Error: --subnet and `wait` are late\nGive --timeout 90m or more.\n[deadline-passed]",
  );
  expect(report.data).toMatchObject({
    message: "--subnet and `wait` are late",
    hint: "Give --timeout 90m or more.",
  });
});

test.each([
  [
    "thrown by a scope that could not be left either",
    new SuppressedError(new Error("close"), gone),
  ],
  [
    "among several",
    new AggregateError([new TypeError("x"), gone, new ClusterError("cloud-failed", "later")]),
  ],
  ["deep inside both", new AggregateError([new SuppressedError(new Error("close"), gone)])],
])("the failure that a user can act on is told: %s", (_, thrown) => {
  expect(reportError(thrown, circumstances).data).toMatchObject({ id: "connection-failed" });
});

test.each([
  ["the reason itself", new Interrupted("SIGTERM")],
  ["an aborted request", new DOMException("The operation was aborted", "AbortError")],
  [
    "an error that was caused by it",
    new ClusterError("connection-failed", "x", { cause: new Interrupted("SIGTERM") }),
  ],
])("after an interruption %s is no failure of its own", (_, thrown) => {
  const report = reportError(thrown, {
    ...circumstances,
    interruption: new Interrupted("SIGTERM"),
  });
  expect(report).toMatchObject({
    exitCode: 1,
    text: "Error: Interrupted by SIGTERM\n[interrupted]",
  });
});

/** An error with so many others around it. */
function wrapped(error: Error, times: number): Error {
  return times === 0 ? error : wrapped(new Error(`wrapped ${times}`, { cause: error }), times - 1);
}

test("after an interruption, causes are followed eight times, so that circles end", () => {
  const idOf = (thrown: Error): unknown =>
    reportError(thrown, { ...circumstances, interruption: new Interrupted("SIGTERM") }).data["id"];
  const reason = new Interrupted("SIGTERM");
  expect([idOf(wrapped(reason, 8)), idOf(wrapped(reason, 9))]).toEqual(["interrupted", "bug"]);
  const circle = new Error("outer");
  circle.cause = new Error("inner", { cause: circle });
  expect(idOf(circle)).toBe("bug");
});

test("what fails while cleaning up after an interruption is told as what it is", () => {
  const report = reportError(gone, { ...circumstances, interruption: new Interrupted("SIGINT") });
  expect(report.data).toMatchObject({ id: "connection-failed" });
});

test.each([
  ["an error", new TypeError("x is not a function"), "TypeError: x is not a function"],
  ["a text", "oops", "oops"],
  ["nothing", undefined, "undefined"],
  ["the first of several errors", new AggregateError([new TypeError("first"), new TypeError("second")]), "TypeError: first"], // prettier-ignore
  [
    "a collection of no errors",
    new AggregateError([], "all of none"),
    "AggregateError: all of none",
  ],
  [
    "an aborted request that nobody asked to abort",
    new DOMException("aborted", "AbortError"),
    "AbortError: aborted",
  ],
])("%s that nobody meant to throw is a bug", (_, thrown, what) => {
  const report = reportError(thrown, circumstances);
  expect(report.exitCode).toBe(70);
  expect(unmarked(report.text)).toStartWith(
    `Error: Internal error in cluster-x: ${what}\nPlease report this bug`,
  );
  expect(report.text).toEndWith("\n[bug]");
});

test("stacks show where an error and its causes were thrown, as deep as eight causes, and circles end", () => {
  const innermost = new Error("the reason");
  innermost.stack = "Error: the reason\n    at first.ts:1:2";
  const stackOf = (thrown: unknown): string => unmarked(reportError(thrown, circumstances).stack);
  const stack = stackOf(wrapped(innermost, 8));
  expect(stack).toContain("wrapped 1");
  expect(stack).toContain("error-report.test.ts:");
  expect(stack).toEndWith("\n  Caused by Error: the reason\n    at first.ts:1:2");
  expect(stackOf(wrapped(innermost, 9))).toEndWith("\n  Caused by Error: the reason");
});

test("stacks show every error that was thrown together with others", () => {
  const several = new AggregateError([new Error("one"), new Error("two")]);
  const { stack } = reportError(new SuppressedError(new Error("close"), several), circumstances);
  for (const message of ["one", "two", "close"])
    expect(unmarked(stack)).toContain(`Caused by Error: ${message}\n`);
});

test.each([
  ["a full disk", { code: "ENOSPC", syscall: "write" }, "Free some space"],
  [
    "a home that is no folder",
    { code: "ENOTDIR", syscall: "mkdir", path: "/dev/null/.cache" },
    "XDG_CACHE_HOME",
  ],
  [
    "a folder of somebody else's",
    { code: "EACCES", syscall: "mkdir", path: "/root/x" },
    "permission",
  ],
  ["a folder in place of a file", { code: "EISDIR", syscall: "rename", path: "/x" }, "remove it"],
  ["a circular link", { code: "ELOOP", syscall: "scandir", path: "/x" }, "XDG_STATE_HOME"],
  ["a name that is too long", { code: "ENAMETOOLONG", syscall: "scandir", path: "/x" }, "XDG_"],
  ["a limit on the size of files", { code: "EFBIG", syscall: "write", path: "/x" }, "ulimit -f"],
  [
    "a file system without links",
    { code: "ENOSYS", syscall: "symlink", path: "1", dest: "/x" },
    "lacks",
  ],
  ["too many open files", { code: "EMFILE", syscall: "open", path: "/tmp/x" }, "ulimit"],
])("%s is this computer's trouble, not a bug", (_, properties, remedy) => {
  const message = `${properties.code}: the system's words, ${properties.syscall} '/x'`;
  const thrown = Object.assign(new Error(message), properties);
  const { exitCode, text, data } = reportError(thrown, circumstances);
  expect(exitCode).toBe(5);
  const { dest, ...facts } = { dest: undefined, ...properties };
  expect(data["facts"]).toEqual(facts);
  const what = dest ?? ("path" in properties ? properties.path : "a file");
  expect(text).toStartWith(`Error: Cannot access ${what} on this computer: the system's words.\n`);
  expect(text).toContain(remedy);
  expect(text).toEndWith("[machine-not-set-up]");
});

test.each([
  ["a connection", { code: "EACCES", syscall: "connect", address: "192.0.2.1" }],
  ["a library's refusal", { code: "EACCES" }],
  ["a file that should be there", { code: "ENOENT", syscall: "open", path: "/tmp/x" }],
])("%s is not taken for it", (_, properties) => {
  expect(reportError(Object.assign(new Error("x"), properties), circumstances).exitCode).toBe(70);
});
