import { expect, test } from "bun:test";
import { nearest } from "../../../src/model/rule.ts";

const flags = ["--masters", "--agents", "--public-agents", "--cloud-region", "--verbose"];

test.each([
  ["--mastres", "--masters"],
  ["--master", "--masters"],
  ["--Masters", "--masters"],
  ["--agent", "--agents"],
  ["--region", "--cloud-region"],
  ["--verbsoe", "--verbose"],
  ["--mostars", "--masters"],
  ["--pubilc-agnets", "--public-agents"],
  ["--regi", "--cloud-region"],
])("%s was probably meant as %s", (word, meant) => {
  expect(nearest(word, flags)).toBe(meant);
});

test.each([
  ["lst", "list"],
  ["listt", "list"],
  ["lisp", "list"],
  ["s", "ls"],
])("one letter that is missing, extra or wrong, %s, is one mistake: %s", (word, meant) => {
  expect(nearest(word, ["create", meant, "wait"])).toBe(meant);
});

test.each([
  ["lsit", "list"],
  ["tset", "test"],
  ["cerate", "create"],
])("two letters in the wrong order, %s, are one mistake: %s", (word, meant) => {
  expect(nearest(word, ["create", "list", "test", "wait"])).toBe(meant);
});

test("a doubled letter is no swap", () => {
  expect(nearest("aab", ["abc"])).toBeUndefined();
});

test.each(["--x", "--reg", "--mxxxers", "--colour", "--", ""])("%p is near to nothing", (word) => {
  expect(nearest(word, flags)).toBeUndefined();
});

test("without candidates nothing is near", () => {
  expect(nearest("create", [])).toBeUndefined();
});

test("a word of one letter is never meant by another, and a long text by none", () => {
  expect(nearest("x", ["a", "b"])).toBeUndefined();
  expect(nearest(`${"-".repeat(100)}agents`, flags)).toBeUndefined();
});
