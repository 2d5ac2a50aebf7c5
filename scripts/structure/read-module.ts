import { type Node, parseSync, Visitor } from "oxc-parser";

export interface Module {
  /** Lines of every function that is longer than one. */
  readonly functionLengths: readonly number[];
  /** What is imported or re-exported, types and `import()` included, each once and as it is written. */
  readonly specifiers: readonly string[];
  /** The number of members of each interface and object type that has a name. */
  readonly members: ReadonlyMap<string, number>;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Reads TypeScript or JavaScript. */
export function readModule(path: string, text: string): Module {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const functions: Span[] = [];
  const specifiers = new Set<string>();
  const members = new Map<string, number>();
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
    ExportNamedDeclaration: importing,
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
    members,
  };
}

function membersOf(type: Node): number {
  return type.type === "TSTypeLiteral" ? type.members.length : 0;
}
