/** The package has no types of its own. */
declare module "dt-python-parser" {
  export class Python2Parser {
    /** Returns the syntax errors of a text. */
    validate(text: string): readonly { readonly startLine: number; readonly message: string }[];
  }
}
