import type * as Yaml from "yaml";

export interface Fault {
  /** The offset in the text. */
  readonly at: number;
  readonly message: string;
}

type Module = Pick<typeof Yaml, "isMap" | "isPair" | "isScalar" | "isSeq">;

/**
 * Returns what a document of YAML 1.2 contains that would change on its way to a node: JSON can't
 * hold it, or readers of YAML 1.1, such as PyYAML, take it for something else. Times and dates
 * aren't among it: they are text here, as YAML 1.2 has it, and are passed on as text.
 */
export function yamlFaults(yaml: Module, document: Yaml.Document.Parsed): readonly Fault[] {
  const { yaml: version } = document.directives;
  if (version.explicit === true && version.version !== "1.2")
    return [{ at: 0, message: problems.version }];
  const faults: Fault[] = [];
  const pending: unknown[] = [document.contents];
  for (const node of pending) {
    if (yaml.isPair(node)) pending.push(node.key, node.value);
    else if (yaml.isSeq(node) || yaml.isMap(node))
      for (const item of node.items) pending.push(item);
    if (yaml.isMap(node)) faults.push(...keyFaults(yaml, node));
    const message = yaml.isScalar(node) ? scalarProblem(node) : undefined;
    if (yaml.isScalar(node) && message !== undefined)
      faults.push({ at: node.range?.[0] ?? 0, message });
  }
  return faults;
}

/** The parser's own search for repeated keys compares each key with all others. */
function keyFaults({ isScalar }: Module, map: Yaml.YAMLMap): readonly Fault[] {
  const seen = new Set<unknown>();
  return map.items.flatMap(({ key }) => {
    const value = isScalar(key) ? key.value : undefined;
    const at = (key as Yaml.Node | null)?.range?.[0] ?? map.range?.[0] ?? 0;
    // The key of a merge is a symbol.
    if (typeof value !== "string" && typeof value !== "symbol")
      return [{ at, message: problems.key }];
    const name = String(value);
    if (seen.has(name)) return [{ at, message: problems.repeated }];
    seen.add(name);
    return [];
  });
}

function scalarProblem({ value, source = "", type, tag }: Yaml.Scalar): string | undefined {
  if (typeof value === "number" && !Number.isFinite(value)) return problems.number;
  if (typeof value === "string" && !value.isWellFormed()) return problems.text;
  if (typeof value === "symbol") return tag === undefined ? undefined : problems.tag;
  if (type !== "PLAIN" || tag === "!" || tag === "tag:yaml.org,2002:str") return undefined;
  return (typeof value === "string" ? isOldValue(source) : /^[-+]?0\d+$/.test(source))
    ? problems.old
    : undefined;
}

/** Whether PyYAML reads a text of YAML 1.2 as a truth value or a number. */
const isOldValue = (text: string): boolean =>
  /^(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/.test(text) ||
  (/\d/.test(text) && oldNumber.test(text));

const oldNumber =
  /^[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|\d[\d_]*|\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|\.[\d_]+(?:[eE][-+]\d+)?)$/;

export const problems = {
  tag: "JSON has no values with this tag",
  version: "this must be YAML 1.2",
  key: "a key must be text: put quotes around it",
  repeated: "Map keys must be unique",
  number: "JSON has no such number",
  text: "this text has half of a character",
  old: "YAML 1.1 and 1.2 read this differently: put quotes around it, or write true, false or a number such as 8 or 0o10",
};
