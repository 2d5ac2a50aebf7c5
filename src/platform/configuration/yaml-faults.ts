import type * as Yaml from "yaml";

export interface Fault {
  /** The offset in the text. */
  readonly at: number;
  readonly message: string;
}

type Module = Pick<typeof Yaml, "isAlias" | "isMap" | "isPair" | "isScalar" | "isSeq">;

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
  const anchors = new Map<string, Yaml.Node>();
  // In the order of the text, because an anchor must stand before its aliases.
  const pending: unknown[] = [document.contents];
  while (pending.length > 0) {
    const node = pending.pop();
    if (yaml.isPair(node)) {
      faults.push(...mergeFaults(yaml, node, anchors));
      pending.push(node.value, node.key);
    } else if (yaml.isSeq(node) || yaml.isMap(node)) {
      if (yaml.isMap(node)) faults.push(...keyFaults(yaml, node));
      for (const item of node.items.toReversed()) pending.push(item);
    } else if (yaml.isAlias(node) && !anchors.has(node.source))
      faults.push({ at: placeOf(node), message: problems.alias });
    const message = yaml.isScalar(node) ? scalarProblem(node) : undefined;
    if (yaml.isScalar(node) && message !== undefined) faults.push({ at: placeOf(node), message });
    const isAnchored = yaml.isScalar(node) || yaml.isSeq(node) || yaml.isMap(node);
    if (isAnchored && node.anchor !== undefined) anchors.set(node.anchor, node);
  }
  return faults;
}

const placeOf = (node: Yaml.Node): number => node.range?.[0] ?? 0;

/** `<<` takes a mapping, or a list of mappings. An alias without an anchor is reported by itself. */
function mergeFaults(
  yaml: Module,
  { key, value }: Yaml.Pair,
  anchors: ReadonlyMap<string, Yaml.Node>,
): readonly Fault[] {
  if (!yaml.isScalar(key) || typeof key.value !== "symbol" || key.tag !== undefined) return [];
  const meant = (node: unknown): unknown =>
    yaml.isAlias(node) ? (anchors.get(node.source) ?? node) : node;
  const source = meant(value);
  const parts: readonly unknown[] = yaml.isSeq(source) ? source.items : [source];
  const isMergeable = (part: unknown): boolean => yaml.isMap(part) || yaml.isAlias(part);
  return parts.every((part) => isMergeable(meant(part)))
    ? []
    : [{ at: placeOf(key), message: problems.merge }];
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
  alias:
    "no anchor (&) of this name stands before this alias (*); put quotes around text that begins with *",
  merge: "<< must be followed by a mapping, or by a list of mappings",
  key: "a key must be text: put quotes around it",
  repeated: "Map keys must be unique",
  number: "JSON has no such number",
  text: "this text has half of a character",
  old: "YAML 1.1 and 1.2 read this differently: put quotes around it, or write true, false or a number such as 8 or 0o10",
};
