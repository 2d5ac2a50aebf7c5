import { parseSync, Visitor } from "oxc-parser";

const makers = new Set(["test", "it"]);

/** The names of a file's tests as they are written: `%s` stays, and a template ends at its first value. */
export function testNames(path: string, text: string): readonly string[] {
  const names: string[] = [];
  new Visitor({
    CallExpression: ({ callee, arguments: [name] }) => {
      if (!makers.has(rootOf(callee))) return;
      if (name?.type === "Literal" && typeof name.value === "string") names.push(name.value);
      if (name?.type === "TemplateLiteral") names.push(name.quasis[0]?.value.cooked ?? "");
    },
  }).visit(parseSync(path, text).program);
  return names;
}

/** The name that a chain such as `test.skipIf(…).each(…)` begins with. */
function rootOf(callee: unknown): string {
  for (let at = callee; ;) {
    const node = at as {
      readonly name?: string;
      readonly object?: unknown;
      readonly callee?: unknown;
    };
    if (node.name !== undefined) return node.name;
    at = node.object ?? node.callee;
    if (at === undefined) return "";
  }
}
