/**
 * Readers of values from outside: JSON of our own files, of engines and of platforms, and the texts of tags and labels.
 * They compose, and the type of the value follows from them. Each reads only an object's own properties, takes time in
 * proportion to the value, and stops at the first element of a list that has another shape. Depth is limited where JSON
 * is parsed (`system/files/read-text.ts`).
 */

/** Takes anything and returns the value, or `undefined` if it has another shape. */
export type Reader<Value> = (found: unknown) => Value | undefined;

interface Optional<Value> {
  readonly reader: Reader<Value>;
  /**
   * `missing`: a field of another shape makes the object unreadable. `anything`: a field of another
   * shape counts as missing.
   */
  readonly accepts: "missing" | "anything";
}

type Fields = Readonly<Record<string, Reader<unknown> | Optional<unknown>>>;

type FieldValue<Field> =
  Field extends Reader<infer Value>
    ? Exclude<Value, undefined>
    : Field extends Optional<infer Value>
      ? Value | undefined
      : never;

type OptionalName<Of extends Fields> = {
  [Name in keyof Of]: Of[Name] extends { readonly accepts: "missing" } ? Name : never;
}[keyof Of];

/** What `object` reads with these fields. */
export type FieldValues<Of extends Fields> = {
  readonly [Name in Exclude<keyof Of, OptionalName<Of>>]: FieldValue<Of[Name]>;
} & { readonly [Name in OptionalName<Of>]?: FieldValue<Of[Name]> };

/** What a reader returns, so that the reader is its only declaration. */
export type ValueOf<Of extends Reader<unknown>> = Exclude<ReturnType<Of>, undefined>;

/** Whether a parsed value (JSON, YAML) is an object with keys, not a list and not null. */
export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const anything: Reader<unknown> = (found) => found;

export const anyMapping: Reader<Readonly<Record<string, unknown>>> = (found) =>
  isMapping(found) ? found : undefined;

export const string: Reader<string> = (found) => (typeof found === "string" ? found : undefined);

/** The expression must take linear time, like every expression in this program. */
export const matching =
  (shape: RegExp): Reader<string> =>
  (found) =>
    typeof found === "string" && shape.test(found) ? found : undefined;

export const number: Reader<number> = (found) => (typeof found === "number" ? found : undefined);

export const integer: Reader<number> = (found) =>
  typeof found === "number" && Number.isSafeInteger(found) ? found : undefined;

/** 1, 2, 3 … */
export const positiveInteger: Reader<number> = (found) =>
  Number(integer(found)) > 0 ? integer(found) : undefined;

export const boolean: Reader<boolean> = (found) => (typeof found === "boolean" ? found : undefined);

export const oneOf =
  <const Choice extends string | number>(...choices: readonly Choice[]): Reader<Choice> =>
  (found) =>
    choices.find((choice) => choice === found);

/** A list in which every element has the shape. */
export const list =
  <Value>(element: Reader<Value>): Reader<readonly Value[]> =>
  (found) =>
    Array.isArray(found) ? readEach(found, element) : undefined;

/** An object with any keys that `name` accepts, in which every value has the shape. */
export const mapping =
  <Value>(name: Reader<string>, value: Reader<Value>): Reader<Readonly<Record<string, Value>>> =>
  (found) => {
    if (!isMapping(found)) return undefined;
    const entries = readEach(Object.entries(found), ([key, each]) => {
      const read = name(key) === undefined ? undefined : value(each);
      return read === undefined ? undefined : ([key, read] as const);
    });
    // Unlike an assignment, this keeps a key such as __proto__ as data.
    return entries && Object.fromEntries(entries);
  };

/** An object with these fields. Others are left out. */
export const object =
  <Of extends Fields>(fields: Of): Reader<FieldValues<Of>> =>
  (found) => {
    if (!isMapping(found)) return undefined;
    const values: [name: string, value: unknown][] = [];
    for (const [name, each] of Object.entries(fields)) {
      const given = own(found, name);
      const { reader, accepts } =
        typeof each === "function" ? { reader: each, accepts: "nothing" } : each;
      const value = reader(given);
      const isAccepted =
        value !== undefined ||
        accepts === "anything" ||
        (accepts === "missing" && given === undefined);
      if (!isAccepted) return undefined;
      values.push([name, value]);
    }
    return Object.fromEntries(values) as FieldValues<Of>;
  };

export const field =
  <Value>(name: string, reader: Reader<Value>): Reader<Value> =>
  (found) =>
    isMapping(found) ? reader(own(found, name)) : undefined;

/** For a field: it may be missing. */
export const optional = <Value>(reader: Reader<Value>) => ({ reader, accepts: "missing" }) as const;

/** For a field: it counts as missing if it has another shape. */
export const lenient = <Value>(reader: Reader<Value>) => ({ reader, accepts: "anything" }) as const;

export const withDefault =
  <Value>(reader: Reader<Value>, fallback: NoInfer<Value>) =>
  (found: unknown): Value =>
    reader(found) ?? fallback;

/** Changes the value that was read; `undefined` refuses it. */
export const refined =
  <Value, Result>(
    reader: Reader<Value>,
    change: (value: Value) => Result | undefined,
  ): Reader<Result> =>
  (found) => {
    const value = reader(found);
    return value === undefined ? undefined : change(value);
  };

const own = (found: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(found, name) ? found[name] : undefined;

function readEach<Found, Value>(
  found: readonly Found[],
  reader: (each: Found) => Value | undefined,
): readonly Value[] | undefined {
  const values: Value[] = [];
  for (const each of found) {
    const value = reader(each);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}
