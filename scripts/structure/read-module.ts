import { type Node, parseSync, Visitor } from "oxc-parser";

export interface Module {
  /** Lines of every function that is longer than one. */
  readonly functionLengths: readonly number[];
  /** What is imported or re-exported, types and `import()` included, each once and as it is written. */
  readonly specifiers: readonly string[];
  /** The number of tokens, without comments. A text, and each part of a template, is one. */
  readonly tokens: number;
  readonly exports: number;
  /** The number of members of each interface and object type that has a name. */
  readonly members: ReadonlyMap<string, number>;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** One token each, or none for a comment. */
const token =
  /[\p{ID_Continue}$#]+|=>|\.\.\.|\?\?=?|\?\.|[=!]==?|&&=?|\|\|=?|\*\*|<=|\+\+|--|[+\-*/]=|[^\s`]/gu;

function tokensIn(text: string, spans: readonly (Span & { readonly is?: string })[]): number {
  let code = "";
  let at = 0;
  for (const { start, end, is = " 0 " } of spans.toSorted(
    (one, other) => one.start - other.start,
  )) {
    if (start < at) continue;
    code += text.slice(at, start) + is;
    at = end;
  }
  return (code + text.slice(at)).replaceAll("${", " ").match(token)?.length ?? 0;
}

/** Reads TypeScript or JavaScript. */
export function readModule(path: string, text: string): Module {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const functions: Span[] = [];
  const specifiers = new Set<string>();
  const members = new Map<string, number>();
  const texts: Span[] = [];
  const exported = { count: 0 };
  const importing = ({
    source,
  }: {
    readonly source: { readonly value?: unknown } | null;
  }): void => {
    if (typeof source?.value === "string") specifiers.add(source.value);
  };
  new Visitor({
    FunctionDeclaration: (node) => void functions.push(node),
    FunctionExpression: (node) => void functions.push(node),
    ArrowFunctionExpression: (node) => void functions.push(node),
    ImportDeclaration: importing,
    ExportNamedDeclaration: (node) => {
      exported.count += Math.max(1, node.specifiers.length);
      importing(node);
    },
    Literal: (node) => void texts.push(node),
    TemplateElement: (node) => void texts.push(node),
    ExportAllDeclaration: importing,
    ImportExpression: importing as (node: { readonly source: object }) => void,
    TSImportType: importing,
    TSInterfaceDeclaration: ({ id, body }) => void members.set(id.name, body.body.length),
    TSTypeAliasDeclaration: ({ id, typeAnnotation }) =>
      void members.set(id.name, membersOf(typeAnnotation)),
  }).visit(program);
  const lengths = functions.map(({ start, end }) => text.slice(start, end).split("\n").length);
  return {
    functionLengths: lengths.filter((length) => length > 1),
    specifiers: [...specifiers],
    tokens: tokensIn(text, [...comments.map((span) => ({ ...span, is: "" })), ...texts]),
    exports: exported.count,
    members,
  };
}

function membersOf(type: Node): number {
  return type.type === "TSTypeLiteral" ? type.members.length : 0;
}
