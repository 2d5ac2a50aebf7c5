/**
 * Writes src/commands/results.schema.json, a JSON Schema of what `--output json` prints, from the types in src/commands/json-results.ts.
 * Usage: bun run scripts/json-schema.ts [--check]     --check: writes nothing; exit code 1 if the file is stale
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  API,
  type Checker,
  type Symbol,
  SymbolFlags,
  type Type,
  TypeFlags,
} from "typescript/unstable/async";
import { cloudKind } from "../src/backend/cloud/cloud-kind.ts";
import type { describePlan as describeCloud } from "../src/backend/cloud/plan.ts";
import { containerKind } from "../src/backend/container/container-kind.ts";
import type { describePlan as describeContainers } from "../src/backend/container/container-creation.ts";
import type { describeCopy as describeContainerCopy } from "../src/backend/container/copies/container-copy.ts";
import type { describeCopy as describeVmCopy } from "../src/backend/vm/copies/vm-copy.ts";
import type { describePlan as describeVms } from "../src/backend/vm/plan.ts";
import { vmKind } from "../src/backend/vm/vm-kind.ts";
import type { JsonError } from "../src/cli/error-report.ts";
import type { PlannedPlatform } from "../src/cluster/create/plan-machines.ts";
import type { JsonResults } from "../src/commands/json-results.ts";
import { programFor } from "../src/commands/program.ts";
import { formatted } from "./reference.ts";

const root = join(import.meta.dir, "..");
const file = join(root, "src", "commands", "results.schema.json");

type Summary = ReturnType<
  | typeof describeCloud
  | typeof describeContainers
  | typeof describeContainerCopy
  | typeof describeVms
  | typeof describeVmCopy
>;

/** What the schema is made of. */
export interface Declared {
  readonly results: JsonResults<PlannedPlatform & Summary["facts"]>;
  readonly error: JsonError;
}

type Schema = Readonly<Record<string, unknown>>;

/** Loads only what these types need. */
async function readDeclared(
  use: (checker: Checker, declared: Type) => Promise<Schema>,
): Promise<Schema> {
  const folder = await mkdtemp(join(tmpdir(), "json-schema-"));
  try {
    const project = join(folder, "tsconfig.json");
    const files = [import.meta.path, join(root, "src", "system", "text-files.d.ts")];
    const compilerOptions = { typeRoots: [join(root, "node_modules", "@types")] };
    const settings = { extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] };
    await writeFile(project, JSON.stringify(settings));
    const compiler = new API({ cwd: root });
    try {
      const snapshot = await compiler.updateSnapshot({ openProjects: [project] });
      const [opened] = snapshot.getProjects();
      const source = await opened?.program.getSourceFile(import.meta.path);
      const module = source && (await opened?.checker.getSymbolAtLocation(source));
      if (opened === undefined || module === undefined) throw new Error("cannot read the types");
      const { checker } = opened;
      const declared = (await checker.getExportsOfModule(module)).find(
        ({ name }) => name === "Declared",
      );
      if (declared === undefined) throw new Error("no type Declared");
      return await use(checker, await checker.getDeclaredTypeOfSymbol(declared));
    } finally {
      await compiler.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

const primitives: readonly (readonly [TypeFlags, Schema])[] = [
  [TypeFlags.Unknown, {}],
  [TypeFlags.Boolean, { type: "boolean" }],
  [TypeFlags.StringLike & ~TypeFlags.StringLiteral, { type: "string" }],
  [TypeFlags.Number, { type: "number" }],
  [TypeFlags.Null, { type: "null" }],
];

async function schemaOf(checker: Checker, type: Type): Promise<Schema> {
  const primitive = primitives.find(([flags]) => (type.flags & flags) !== 0);
  if (primitive !== undefined) return primitive[1];
  if (type.isLiteralType()) return { enum: [type.value] };
  if (type.isUnionType()) {
    const members = (await type.getTypes()).filter(({ flags }) => !(flags & TypeFlags.Undefined));
    return anyOf(await Promise.all(members.map((each) => schemaOf(checker, each))));
  }
  if (await checker.isArrayType(type)) {
    const [element] = type.isTypeReference() ? await checker.getTypeArguments(type) : [];
    if (element !== undefined) return { type: "array", items: await schemaOf(checker, element) };
  }
  if ((await type.getSymbol())?.name === "Date") return { type: "string", format: "date-time" };
  if (type.isObjectType() || type.isIntersectionType()) return await objectSchema(checker, type);
  throw new Error(`no JSON has the type ${await checker.typeToString(type)}`);
}

/** The compiler's order of a union's members is not always the same. */
function anyOf(schemas: readonly Schema[]): Schema {
  const values = schemas.flatMap((schema) => (schema["enum"] as readonly unknown[]) ?? []);
  const isBoolean = values.length === 2 && values.every((value) => typeof value === "boolean");
  const literals = isBoolean
    ? { type: "boolean" }
    : { enum: values.toSorted((a, b) => (String(a) < String(b) ? -1 : 1)) };
  const others = schemas.filter((schema) => schema["enum"] === undefined);
  const all = [...others, ...(values.length === 0 ? [] : [literals])];
  const [first, ...rest] = all.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return rest.length === 0 ? (first ?? {}) : { anyOf: [first, ...rest] };
}

interface Property {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

async function objectSchema(checker: Checker, type: Type): Promise<Schema> {
  const symbols = await checker.getPropertiesOfType(type);
  const properties = await Promise.all(symbols.map((symbol) => propertyOf(checker, symbol)));
  const [index] = await checker.getIndexInfosOfType(type);
  const required = properties.flatMap(({ name, isRequired }) => (isRequired ? [name] : []));
  return {
    type: "object",
    properties: Object.fromEntries(properties.map(({ name, schema }) => [name, schema])),
    ...(required.length > 0 && { required }),
    additionalProperties: index === undefined ? false : await schemaOf(checker, index.valueType),
  };
}

async function propertyOf(checker: Checker, symbol: Symbol): Promise<Property> {
  const type = await checker.getTypeOfSymbol(symbol);
  if (type === undefined) throw new Error(`${symbol.name} has no type`);
  const text = await checker.getDocumentationCommentOfSymbol(symbol);
  const members = type.isUnionType() ? await type.getTypes() : [type];
  const isOptional =
    (symbol.flags & SymbolFlags.Optional) !== 0 ||
    members.some(({ flags }) => (flags & TypeFlags.Undefined) !== 0);
  const schema = await schemaOf(checker, type);
  return {
    name: symbol.name,
    schema: text === "" ? schema : { description: text.replaceAll(/\s+/g, " "), ...schema },
    isRequired: !isOptional,
  };
}

/** A command's output: its result, its error, or both. */
function outputOf(result: Schema): Schema {
  const variants = (result["anyOf"] as readonly Schema[] | undefined) ?? [result];
  const version = {
    description: "Changes if a field is removed or gets another meaning.",
    const: 1,
  };
  const error = { $ref: "#/$defs/error" };
  const withResult = variants.map((variant) => ({
    ...variant,
    properties: {
      schemaVersion: version,
      ...(variant["properties"] as Schema),
      error,
    },
    required: ["schemaVersion", ...((variant["required"] as readonly string[]) ?? [])],
  }));
  const failed = {
    type: "object",
    properties: { schemaVersion: version, error },
    required: ["schemaVersion", "error"],
    additionalProperties: false,
  };
  return { anyOf: [...withResult, failed] };
}

/** The names of the commands that have `--output json`. */
function commandsWithJson(): readonly string[] {
  const commands = [cloudKind, containerKind, vmKind].flatMap((kind) => programFor(kind).commands);
  const names = commands.flatMap(({ name, options }) =>
    options["output"]?.type.choices?.includes("json") === true ? [name] : [],
  );
  return [...new Set(names)].toSorted();
}

async function wholeSchema(): Promise<Schema> {
  const { properties } = (await readDeclared(schemaOf)) as {
    readonly properties: {
      readonly results: { readonly properties: Readonly<Record<string, Schema>> };
      readonly error: Schema;
    };
  };
  const results = Object.entries(properties.results.properties);
  const [declared, existing] = [results.map(([name]) => name).toSorted(), commandsWithJson()];
  if (declared.join() !== existing.join())
    throw new Error(`JsonResults has ${declared.join()}; commands with JSON: ${existing.join()}`);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "What cluster-cloud, cluster-container and cluster-vm print with --output json",
    description:
      "$defs has a schema for each command's output: for `list`, #/$defs/list. This schema allows no other fields; later releases may add some.",
    anyOf: existing.map((name) => ({ $ref: `#/$defs/${name}` })),
    $defs: {
      error: properties.error,
      ...Object.fromEntries(results.map(([name, result]) => [name, outputOf(result)])),
    },
  };
}

const text = await formatted(file, JSON.stringify(await wholeSchema()));
if (!process.argv.includes("--check")) await Bun.write(file, text);
else if ((await Bun.file(file).text()) !== text) {
  console.error("src/commands/results.schema.json is stale: bun run scripts/json-schema.ts");
  process.exitCode = 1;
}
