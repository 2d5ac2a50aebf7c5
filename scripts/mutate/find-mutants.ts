import { parseSync, Visitor } from "oxc-parser";
import type {
  ArrayExpression,
  BinaryExpression,
  CallExpression,
  ExpressionStatement,
  LogicalExpression,
  UnaryExpression,
} from "oxc-parser";

/** A small change to one place of a file, which the tests should detect. */
export interface Mutant {
  /** From the top of the repository. */
  readonly path: string;
  /** Offsets of the text that is replaced. */
  readonly start: number;
  readonly end: number;
  /** The lines where it begins and ends, counted from 1. */
  readonly line: number;
  readonly lastLine: number;
  readonly before: string;
  readonly after: string;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

type Replace = (span: Span, after: string) => void;

const otherOperators: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "??": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
};

const otherMethods = new Map(
  Object.entries({
    some: "every",
    every: "some",
    startsWith: "endsWith",
    endsWith: "startsWith",
    min: "max",
    max: "min",
    all: "race",
    toSorted: "slice",
    trim: "toString",
    includes: "startsWith",
  }),
);

/** Returns every mutant of a file, from top to bottom. */
export function findMutants(path: string, text: string): readonly Mutant[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const found: Mutant[] = [];
  const lineAt = (offset: number): number => text.slice(0, offset).split("\n").length;
  const replace: Replace = ({ start, end }, after) => {
    const before = text.slice(start, end);
    if (before !== after) {
      found.push({ path, start, end, line: lineAt(start), lastLine: lineAt(end), before, after });
    }
  };
  const types: Span[] = [];
  const visitor = {
    ...conditions(text, replace),
    ...operations(text, replace),
    ...values(replace),
  };
  new Visitor({ ...visitor, TSLiteralType: (node) => void types.push(node) }).visit(program);
  const inCode = found.filter(
    ({ start, end }) => !types.some((type) => type.start <= start && end <= type.end),
  );
  return inCode.toSorted((one, other) => one.start - other.start || one.end - other.end);
}

/** Makes conditions always true or always false, and drops negations. */
function conditions(text: string, replace: Replace) {
  const settle = ({ test }: { readonly test: Span | null }): void => {
    if (test === null) return;
    replace(test, "true");
    replace(test, "false");
  };
  return {
    IfStatement: settle,
    ConditionalExpression: settle,
    UnaryExpression: (node: UnaryExpression): void => {
      if (node.operator === "!") replace(node, text.slice(node.argument.start, node.argument.end));
    },
  };
}

/** Swaps operators and methods, and leaves out calls. */
function operations(text: string, replace: Replace) {
  const swap = (node: BinaryExpression | LogicalExpression): void => {
    const other = otherOperators[node.operator];
    if (other === undefined) return;
    // Between the operands are the operator and perhaps a line break.
    const at = text.indexOf(node.operator, node.left.end);
    replace({ start: at, end: at + node.operator.length }, other);
  };
  return {
    BinaryExpression: swap,
    LogicalExpression: swap,
    CallExpression: ({ callee }: CallExpression): void => {
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
      const other = otherMethods.get(callee.property.name);
      if (other !== undefined) replace(callee.property, other);
    },
    ExpressionStatement: (node: ExpressionStatement): void => {
      const { expression } = node;
      const called = expression.type === "AwaitExpression" ? expression.argument : expression;
      if (called.type === "CallExpression" && !/^super\b/.test(text.slice(called.start)))
        replace(node, ";");
    },
  };
}

/** Larger numbers are limits and sizes, where one more makes no difference. */
const largest = 16;

/** Changes numbers and booleans, and empties lists. */
function values(replace: Replace) {
  return {
    Literal: (node: Span & { readonly value: unknown }): void => {
      if (typeof node.value === "boolean") replace(node, String(!node.value));
      if (typeof node.value === "number")
        replace(node, node.value > largest ? "0" : String(node.value + 1));
    },
    ArrayExpression: (node: ArrayExpression): void => {
      if (node.elements.length > 0) replace(node, "[]");
    },
  };
}
