import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { XmlObject, XmlValue } from "./xml.ts";

/**
 * AWS's own description of EC2, from its SDK of the second generation. It judges this cloud: a request that is accepted here must exist there, and so
 * must every field of an answer, each with its type. It has no lists of the values that a field may have.
 */
const modelUrl = (): string => import.meta.resolve("aws-sdk/apis/ec2-2016-11-15.min.json");

/** Begins the error that disposing of a local cloud ends with if a request or an answer was none of EC2's. */
export const modelContradicted = "Requests or answers contradicted AWS's model of EC2";

interface Shape {
  readonly shape?: string;
  /** Absent: a string. */
  readonly type?: string;
  readonly members?: Readonly<Record<string, Shape>>;
  readonly member?: Shape;
  readonly required?: readonly string[];
  readonly locationName?: string;
  readonly queryName?: string;
}

interface Model {
  readonly operations: Readonly<
    Record<string, { readonly input?: Shape; readonly output?: Shape } | undefined>
  >;
  readonly shapes: Readonly<Record<string, Shape>>;
}

/** Form fields by their names' parts: `Filter.1.Name=a` is `{ Filter: { 1: { Name: "a" } } }`. */
interface FieldTree {
  [part: string]: FieldTree | string;
}

export class Ec2Model {
  readonly #model: Model;
  /** A structure's members, by the names that requests or answers have for them. */
  readonly #names = {
    request: new Map<Shape, ReadonlyMap<string, Shape>>(),
    answer: new Map<Shape, ReadonlyMap<string, Shape>>(),
  };

  constructor(model: Model) {
    this.#model = model;
  }

  /** Returns what is wrong with a request, without `Action` and `Version`. */
  requestProblems(action: string, fields: ReadonlyMap<string, string>): readonly string[] {
    const operation = this.#model.operations[action];
    if (operation === undefined) return [`there is no operation ${action}`];
    const problems: string[] = [];
    this.#checkFields(treeOf(fields), operation.input ?? { type: "structure" }, {
      path: action,
      problems,
    });
    return problems;
  }

  /** Returns what is wrong with the answer to an accepted request. */
  answerProblems(action: string, answer: XmlObject): readonly string[] {
    const output = this.#model.operations[action]?.output ?? plainAnswer;
    const problems: string[] = [];
    this.#checkValue(answer, output, { path: `${action}Response`, problems });
    return problems;
  }

  #resolved(shape: Shape): Shape {
    return shape.shape === undefined ? shape : (this.#model.shapes[shape.shape] ?? shape);
  }

  #membersOf(shape: Shape, side: "request" | "answer"): ReadonlyMap<string, Shape> {
    const known = this.#names[side].get(shape);
    if (known !== undefined) return known;
    const nameOf = side === "request" ? requestName : answerName;
    const members = new Map(
      Object.entries(shape.members ?? {}).map(([name, member]) => [nameOf(name, member), member]),
    );
    this.#names[side].set(shape, members);
    return members;
  }

  #checkFields(given: FieldTree | string, reference: Shape, at: Place): void {
    const shape = this.#resolved(reference);
    if (shape.type === "list") return this.#checkListFields(given, shape, at);
    if (shape.type !== "structure") {
      const isRight = typeof given === "string" && isText(given, shape.type);
      if (!isRight) report(at, `${JSON.stringify(given)} is no ${shape.type ?? "string"}`);
      return;
    }
    if (typeof given === "string") return report(at, "it is a structure, not a value");
    const members = this.#membersOf(shape, "request");
    for (const [name, value] of Object.entries(given)) {
      const member = members.get(name);
      const inner = { ...at, path: `${at.path}.${name}` };
      if (member === undefined) report(inner, "there is no such parameter");
      else this.#checkFields(value, member, inner);
    }
    for (const name of shape.required ?? []) {
      const member = shape.members?.[name];
      if (member !== undefined && given[requestName(name, member)] === undefined)
        report(at, `the parameter ${name} is missing`);
    }
  }

  #checkListFields(given: FieldTree | string, shape: Shape, at: Place): void {
    // An empty list.
    if (given === "") return;
    if (typeof given === "string") return report(at, "it is a list, not a value");
    for (const [position, value] of Object.entries(given)) {
      const inner = { ...at, path: `${at.path}.${position}` };
      if (!/^[1-9]\d*$/.test(position)) report(inner, "it is a list, and that is no position");
      else this.#checkFields(value, shape.member ?? {}, inner);
    }
  }

  #checkValue(given: XmlValue, reference: Shape, at: Place): void {
    if (given === undefined) return;
    const shape = this.#resolved(reference);
    if (shape.type === "list") {
      if (!isList(given)) return report(at, "it is a list");
      for (const item of given) this.#checkValue(item, shape.member ?? {}, at);
      return;
    }
    if (shape.type !== "structure") {
      if (!isValue(given, shape.type))
        report(at, `${JSON.stringify(given)} is no ${shape.type ?? "string"}`);
      return;
    }
    if (!isStructure(given)) return report(at, "it is a structure");
    const members = this.#membersOf(shape, "answer");
    for (const [name, value] of Object.entries(given)) {
      const known = members.get(name);
      // Most fields are such values, and an answer may have a hundred thousand.
      if (known !== undefined && isLeaf(known) && isValue(value, known.type)) continue;
      const inner = { ...at, path: `${at.path}.${name}` };
      const member = known ?? unlisted(inner.path);
      if (member === undefined) report(inner, "there is no such field");
      else this.#checkValue(value, member, inner);
    }
  }
}

const isLeaf = ({ shape, type }: Shape): boolean =>
  shape === undefined && type !== "list" && type !== "structure";

interface Place {
  readonly path: string;
  readonly problems: string[];
}

const report = ({ path, problems }: Place, what: string): void =>
  void problems.push(`${path}: ${what}`);

/** For actions whose answer the model doesn't describe. */
const plainAnswer: Shape = { type: "structure" };

/** Fields that the SDK of today knows, and that are newer than the model. */
const newer: Readonly<Record<string, Shape>> = {
  "CreateSecurityGroupResponse.securityGroupArn": {},
  "DescribeSecurityGroupsResponse.securityGroupInfo.securityGroupArn": {},
  "DeleteSecurityGroupResponse.groupId": {},
};

/** EC2 answers whether a change has succeeded, which the model often leaves out. */
const unlisted = (path: string): Shape | undefined =>
  /^\w+Response\.return$/.test(path) ? { type: "boolean" } : newer[path];

/** The protocol `ec2` begins names in requests with a capital. */
function requestName(name: string, { queryName, locationName = name }: Shape): string {
  return queryName ?? `${locationName.charAt(0).toUpperCase()}${locationName.slice(1)}`;
}

const answerName = (name: string, { locationName = name }: Shape): string => locationName;

function treeOf(fields: ReadonlyMap<string, string>): FieldTree {
  const tree: FieldTree = {};
  for (const [name, value] of fields) {
    const parts = name.split(".");
    const last = parts.pop() ?? "";
    let branch = tree;
    for (const part of parts) {
      const next = branch[part] ?? {};
      // The name of a value begins the name of another field: the value is lost, and the structure is judged.
      branch = branch[part] = typeof next === "string" ? {} : next;
    }
    branch[last] = value;
  }
  return tree;
}

function isText(text: string, type: string | undefined): boolean {
  switch (type) {
    case "boolean":
      return text === "true" || text === "false";
    case "integer":
    case "long":
      return /^-?\d+$/.test(text);
    case "double":
    case "float":
      return text !== "" && Number.isFinite(Number(text));
    case "timestamp":
      return !Number.isNaN(Date.parse(text));
    default:
      return true;
  }
}

function isValue(value: XmlValue, type: string | undefined): boolean {
  switch (type) {
    case "boolean":
      return typeof value === "boolean";
    case "integer":
    case "long":
      return Number.isSafeInteger(value);
    case "double":
    case "float":
      return typeof value === "number";
    case "timestamp":
      return value instanceof Date || (typeof value === "string" && isText(value, type));
    default:
      return typeof value === "string";
  }
}

const isList = (value: XmlValue): value is readonly XmlValue[] => Array.isArray(value);

const isStructure = (value: XmlValue): value is XmlObject =>
  typeof value === "object" && !isList(value) && !(value instanceof Date);

const loaded: { model?: Ec2Model | undefined } = {};

/** Undefined where the package isn't installed, as for the demos, which need no packages for development. Read once, when it is first needed. */
export function ec2Model(): Ec2Model | undefined {
  if (!("model" in loaded)) loaded.model = readModel();
  return loaded.model;
}

function readModel(): Ec2Model | undefined {
  const path = modelPath();
  if (path === undefined) return undefined;
  return new Ec2Model(JSON.parse(readFileSync(path, "utf8")) as Model);
}

function modelPath(): string | undefined {
  try {
    return fileURLToPath(modelUrl());
  } catch {
    return undefined;
  }
}
