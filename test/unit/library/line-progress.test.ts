import { expect, test } from "bun:test";
import { LineProgress } from "../../../src/library/runtime.ts";
import { outside } from "../../../src/outside-text.ts";

function listen(): { readonly progress: LineProgress; readonly lines: string[] } {
  const lines: string[] = [];
  return { progress: new LineProgress((line) => lines.push(line)), lines };
}

test("a step says when it begins and, once, how it ended", () => {
  const { progress, lines } = listen();
  {
    using step = progress.start("Boot", "master_0");
    step.update("half of it");
    step.done();
  }
  {
    using _step = progress.start("Launch");
  }
  expect(lines).toEqual(["master_0: Boot …", "master_0: Boot: done", "Launch …", "Launch: failed"]);
});

test("what is waited for is said once, and again after a change", () => {
  const { progress, lines } = listen();
  for (const text of ["two machines", "two machines", "one machine", "", "one machine"])
    progress.waiting(text);
  expect(lines).toEqual(["two machines", "one machine", "one machine"]);
});

test("what is no text comes as none, and a line is a line", () => {
  const { progress, lines } = listen();
  progress.note("one\x1b[2J\ntwo\u202E");
  expect(lines).toEqual(["one\uFFFD[2J", "  two\uFFFD"]);
});

test("no secret is told, and details are for programs with a -v", () => {
  const { progress, lines } = listen();
  progress.hide("s3cret");
  progress.warn(`the s3cret password is ${outside("s3cret")}`);
  progress.detail();
  expect(lines).toEqual(["Warning: the s3cret password is ***"]);
  expect(progress.mask("s3cret")).toBe("***");
});
