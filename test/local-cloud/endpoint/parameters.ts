import { Ec2Error } from "./ec2-error.ts";

type ParameterKind = "text" | "integer" | "boolean";

/** All parameters that an action knows, with N for positions in lists: `{ "Filter.N.Value.N": "text" }`. */
export type ParameterDeclaration = Readonly<Record<string, ParameterKind>>;

/** The form fields of one request, by name. `list` and `texts` read the members of lists. */
export class Parameters {
  readonly #fields: ReadonlyMap<string, string>;
  readonly #prefix: string;

  constructor(fields: ReadonlyMap<string, string>, prefix: string) {
    this.#fields = fields;
    this.#prefix = prefix;
  }

  text(name: string): string | undefined {
    return this.#fields.get(this.#prefix + name);
  }

  requiredText(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === "") throw missing(this.#prefix + name);
    return value;
  }

  integer(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : Number(value);
  }

  requiredInteger(name: string): number {
    return Number(this.requiredText(name));
  }

  boolean(name: string): boolean | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : value.toLowerCase() === "true";
  }

  /** The members of a list of structures: `list("Filter")` reads `Filter.1.…`, `Filter.2.…`. */
  list(name: string): readonly Parameters[] {
    return this.#positions(name).map(
      (position) => new Parameters(this.#fields, `${this.#prefix}${name}.${position}.`),
    );
  }

  /** The members of a list of plain values: `texts("InstanceId")` reads `InstanceId.1`, `InstanceId.2`. */
  texts(name: string): readonly string[] {
    return this.#positions(name).map((position) => this.requiredText(`${name}.${position}`));
  }

  /** The name and value of every field, for comparing requests. */
  entries(): readonly (readonly [string, string])[] {
    return [...this.#fields];
  }

  #positions(name: string): readonly number[] {
    const start = `${this.#prefix}${name}.`;
    const found = new Set<number>();
    for (const key of this.#fields.keys()) {
      if (key.startsWith(start)) found.add(Number.parseInt(key.slice(start.length), 10));
    }
    return [...found].toSorted((left, right) => left - right);
  }
}

/** Rejects undeclared parameters and values of the wrong type, as EC2 does. It never ignores any. */
export function checkParameters(
  fields: ReadonlyMap<string, string>,
  declaration: ParameterDeclaration,
  required: readonly string[],
): void {
  for (const [name, value] of fields) {
    const kind = declaration[name.replaceAll(/\.[1-9]\d*(?=\.|$)/g, ".N")];
    if (kind === undefined)
      throw new Ec2Error("UnknownParameter", `The parameter ${name} is not recognized`);
    checkKind(name, value, kind);
  }
  for (const name of required) {
    if (!isGiven(fields, name)) throw missing(name);
  }
}

function checkKind(name: string, value: string, kind: ParameterKind): void {
  if (kind === "integer" && !/^-?\d{1,10}$/.test(value)) {
    throw new Ec2Error(
      "InvalidParameterValue",
      `Invalid value '${value}' for ${name}. It must be an integer.`,
    );
  }
  if (kind === "boolean" && !/^(?:true|false)$/i.test(value)) {
    throw new Ec2Error(
      "InvalidParameterValue",
      `Invalid value '${value}' for ${name}. It must be true or false.`,
    );
  }
}

function isGiven(fields: ReadonlyMap<string, string>, name: string): boolean {
  return (fields.get(name) ?? "") !== "" || fields.has(`${name}.1`);
}

function missing(name: string): Ec2Error {
  return new Ec2Error("MissingParameter", `The request must contain the parameter ${name}`);
}
