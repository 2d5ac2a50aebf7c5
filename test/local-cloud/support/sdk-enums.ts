import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What the SDK's declarations say about answers: the values that a field may have, which AWS's own model leaves out. */
interface Declarations {
  readonly enums: ReadonlyMap<string, ReadonlySet<string>>;
  /** The types of fields, by interface and field. */
  readonly fields: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

export async function readDeclarations(): Promise<Declarations> {
  const entry = fileURLToPath(import.meta.resolve("@aws-sdk/client-ec2/package.json"));
  const folder = join(dirname(entry), "dist-types", "models");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".d.ts"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  const text = texts.join("\n");
  const enums = [...text.matchAll(/^export declare const (\w+): \{([^}]*)\}/gm)];
  const interfaces = [...text.matchAll(/^export interface (\w+)[^{\n]*\{\n([^]*?)^\}/gm)];
  return {
    enums: new Map(enums.map(([, name = "", body = ""]) => [name, new Set(valuesIn(body))])),
    fields: new Map(interfaces.map(([, name = "", body = ""]) => [name, fieldsIn(body)])),
  };
}

const valuesIn = (body: string): readonly string[] =>
  [...body.matchAll(/: "([^"]*)";/g)].map(([, value = ""]) => value);

const fieldsIn = (body: string): ReadonlyMap<string, string> =>
  new Map(
    [...body.matchAll(/^ {4}(\w+)\??: (\w+)/gm)].map(([, name = "", type = ""]) => [name, type]),
  );

/** Returns the fields of an answer, such as `Volumes.State`, that have a value which EC2 doesn't have, and counts those that may have certain ones only. */
export function judgeEnums(
  answer: unknown,
  type: string,
  { enums, fields }: Declarations,
): { readonly problems: readonly string[]; readonly judged: number } {
  const problems: string[] = [];
  const count = { judged: 0 };
  const walk = (value: unknown, name: string, path: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) walk(item, name, path);
      return;
    }
    const values = enums.get(name);
    if (values !== undefined && typeof value === "string") {
      count.judged += 1;
      if (!values.has(value)) problems.push(`${path}: ${value} is none of ${[...values].join()}`);
    }
    if (typeof value !== "object" || value === null) return;
    for (const [field, inner] of Object.entries(value))
      walk(inner, fields.get(name)?.get(field) ?? "", path === "" ? field : `${path}.${field}`);
  };
  walk(answer, type, "");
  return { problems, ...count };
}
