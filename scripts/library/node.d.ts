/**
 * What the library's code may use beyond ES2024 and the declarations of Node 18. The library is compiled against those and this file, so the
 * compiler finds every use of a later feature, such as the methods of iterators.
 */

/** Node has it from 22.1 on. */
declare module "url" {
  namespace URL {
    function parse(text: string, from?: string): URL | null;
  }
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

/** Node has no such module; see node.ts. */
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
