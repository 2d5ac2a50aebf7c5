import type { AST } from "@eslint-community/regexpp";
import { RegExpParser } from "@eslint-community/regexpp";
import { parseSync, Visitor } from "oxc-parser";
import { Chars, isPotentiallyEmpty, toUnicodeSet } from "regexp-ast-analysis";
import { analyse } from "scslre";

type CharSet = ReturnType<typeof Chars.all>;

export interface SlowExpression {
  /** Counts from 1. */
  readonly line: number;
  /** `/[.\s]+$/` */
  readonly expression: string;
  readonly problem: string;
}

/**
 * Finds the regular expressions of a file that can take more than linear time. `scslre` recognizes repetitions that share characters (`a+a+`, `(a+)+`, a
 * search for `a+$`). It doesn't recognize a search for `ab.*c`, which reads the rest of `abababab…` once for each `ab`: that is the rule below. Expressions
 * made at run time with `new RegExp` are not checked.
 */
export function findSlowExpressions(path: string, text: string): readonly SlowExpression[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const found: SlowExpression[] = [];
  new Visitor({
    Literal: (node) => {
      if (!("regex" in node)) return;
      const { pattern, flags } = node.regex;
      const problem = slowness(pattern, flags);
      const line = text.slice(0, node.start).split("\n").length;
      if (problem !== undefined) found.push({ line, expression: `/${pattern}/${flags}`, problem });
    },
  }).visit(program);
  return found;
}

function slowness(pattern: string, flags: string): string | undefined {
  const [report] = analyse({ source: pattern, flags }).reports;
  if (report !== undefined)
    return `${report.exponential ? "exponential" : "quadratic"} for "${report.character.pick}"`;
  const parsed = new RegExpParser().parseLiteral(`/${pattern}/${flags}`);
  const repeated = quantifiersIn(parsed.pattern).find((quantifier) =>
    isReadAgain(quantifier, parsed.flags),
  );
  return (
    repeated &&
    `quadratic: what is before ${repeated.raw} can occur in the text that ${repeated.raw} matches`
  );
}

/** Those without an upper limit. */
function quantifiersIn(node: AST.Node): readonly AST.Quantifier[] {
  switch (node.type) {
    case "Quantifier":
      return [
        ...(node.max === Number.POSITIVE_INFINITY ? [node] : []),
        ...quantifiersIn(node.element),
      ];
    case "Assertion":
      return node.kind === "lookahead" || node.kind === "lookbehind"
        ? node.alternatives.flatMap(quantifiersIn)
        : [];
    case "Pattern":
    case "Group":
    case "CapturingGroup":
      return node.alternatives.flatMap(quantifiersIn);
    case "Alternative":
      return node.elements.flatMap(quantifiersIn);
    default:
      return [];
  }
}

/**
 * Whether the search, or an earlier repetition, can end at many places within the text that a quantifier matches: nothing between contains a character
 * that they don't match, and something after it may fail. Adjacent repetitions are left to scslre.
 */
function isReadAgain(quantifier: AST.Quantifier, flags: AST.Flags): boolean {
  const matched = charactersOf(quantifier.element, flags);
  const { before, after } = aroundOf(quantifier);
  const between: AST.Element[] = [];
  if (!after.some((element) => element.type === "Assertion" || !isPotentiallyEmpty(element, flags)))
    return false;
  for (const element of before.flatMap(parts).toReversed()) {
    if (isAnchor(element, flags)) return false;
    if (
      element.type === "Quantifier" &&
      element.max === Number.POSITIVE_INFINITY &&
      between.length > 0
    ) {
      const earlier = charactersOf(element, flags);
      if (!between.some((each) => separates(each, earlier, flags))) return true;
    }
    if (separates(element, matched, flags)) return false;
    if (!isPotentiallyEmpty(element, flags)) between.push(element);
  }
  return true;
}

const isAnchor = (element: AST.Element, flags: AST.Flags): boolean =>
  element.type === "Assertion" && element.kind === "start" && !flags.multiline;

/** The elements of a group without alternatives. */
const parts = (element: AST.Element): readonly AST.Element[] =>
  (element.type === "Group" || element.type === "CapturingGroup") &&
  element.alternatives.length === 1
    ? element.alternatives.flatMap(({ elements }) => elements.flatMap(parts))
    : [element];

/** Whether each text that the element matches has a character that is not among those. */
function separates(element: AST.Element, matched: CharSet, flags: AST.Flags): boolean {
  switch (element.type) {
    case "Character":
    case "CharacterSet":
    case "CharacterClass":
      return charactersOf(element, flags).isDisjointWith(matched);
    case "Quantifier":
      return element.min > 0 && separates(element.element, matched, flags);
    case "Group":
    case "CapturingGroup":
      return someSeparates(element.alternatives, matched, flags);
    case "Assertion":
      if (element.kind === "lookahead" || element.kind === "lookbehind")
        return !element.negate && someSeparates(element.alternatives, matched, flags);
      // The start of a line follows a line break.
      return element.kind === "start" && Chars.lineTerminator(flags).isDisjointWith(matched);
    default:
      return false;
  }
}

const someSeparates = (
  alternatives: readonly AST.Alternative[],
  matched: CharSet,
  flags: AST.Flags,
): boolean =>
  alternatives.every(({ elements }) => elements.some((each) => separates(each, matched, flags)));

/** All characters that occur in what it matches. */
function charactersOf(node: AST.Node, flags: AST.Flags): CharSet {
  const none = Chars.empty(flags);
  switch (node.type) {
    case "Character":
    case "CharacterSet":
    case "CharacterClass":
      return toUnicodeSet(node, flags).chars;
    case "Quantifier":
      return charactersOf(node.element, flags);
    case "Group":
    case "CapturingGroup":
    case "Pattern":
      return none.union(...node.alternatives.map((each) => charactersOf(each, flags)));
    case "Alternative":
      return none.union(...node.elements.map((each) => charactersOf(each, flags)));
    case "Assertion":
      return none;
    default:
      return Chars.all(flags);
  }
}

/** The elements that come before and after it in every match, those outside its groups included. */
function aroundOf(element: AST.Element): {
  readonly before: AST.Element[];
  readonly after: AST.Element[];
} {
  const parent = element.parent;
  if (parent.type === "Quantifier") return aroundOf(parent);
  if (parent.type !== "Alternative") return { before: [], after: [] };
  const index = parent.elements.indexOf(element);
  const before = parent.elements.slice(0, index);
  const after = parent.elements.slice(index + 1);
  const group = parent.parent;
  if (group.type === "Pattern") return { before, after };
  const outer = aroundOf(group);
  return { before: [...outer.before, ...before], after: [...after, ...outer.after] };
}
