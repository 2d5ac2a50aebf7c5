/**
 * What Node 20 has beyond the library of ES2023. The library is compiled against that and this file, so the compiler finds every use of a later
 * feature, such as the methods of iterators.
 */

/** Replaced by the build; see node-20.ts. */
interface PromiseConstructor {
  withResolvers<Value>(): PromiseWithResolvers<Value>;
}
interface PromiseWithResolvers<Value> {
  promise: Promise<Value>;
  resolve: (value: Value | PromiseLike<Value>) => void;
  reject: (reason?: unknown) => void;
}
interface MapConstructor {
  groupBy<Key, Item>(
    items: Iterable<Item>,
    keyOf: (item: Item, index: number) => Key,
  ): Map<Key, Item[]>;
}

/** ES2024, and already in Node 20. */
interface String {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** Only Bun has it, and its declarations require it. */
declare namespace fetch {
  const preconnect: undefined;
}

/** A text, like the other files of example platforms. Bun's own types declare these files, but the library is compiled without them. */
declare module "*/platform.yaml" {
  const text: string;
  export default text;
}

/** Node has no such module; see node-20.ts. */
declare module "bun:ffi" {
  interface FFIFunction {
    readonly args: readonly string[];
    readonly returns: string;
  }
  interface Library<Functions> {
    readonly symbols: Record<keyof Functions, (...values: readonly unknown[]) => number>;
  }
  function dlopen<Functions>(library: string, functions: Functions): Library<Functions>;
}
