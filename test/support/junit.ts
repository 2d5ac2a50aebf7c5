/** Reads reports in JUnit's format, with libxml2 and a schema. */
import { join } from "node:path";
import { XmlDocument, XmlElement, XsdValidator } from "libxml2-wasm";

const schema = await Bun.file(join(import.meta.dir, "junit.xsd")).bytes();

export interface JunitElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Returns all elements of the report in their order. Throws unless it is well-formed UTF-8 and follows the schema. */
export function readJunit(report: Uint8Array): readonly JunitElement[] {
  using definition = XmlDocument.fromBuffer(schema);
  using validator = XsdValidator.fromDoc(definition);
  using document = XmlDocument.fromBuffer(report);
  validator.validate(document);
  return document.root
    .find("//*")
    .flatMap((node) => (node instanceof XmlElement ? [elementOf(node)] : []));
}

const elementOf = (element: XmlElement): JunitElement => ({
  name: element.name,
  attributes: Object.fromEntries(element.attrs.map(({ name, value }) => [name, value])),
  text: element.find("*").length > 0 ? "" : element.content,
});

/** The tests of a report, by name: what each came to. */
export const junitOutcomes = (report: Uint8Array): Readonly<Record<string, string>> => {
  const elements = readJunit(report);
  const cases = elements.flatMap((element, place) =>
    element.name === "testcase" ? [[element, place] as const] : [],
  );
  return Object.fromEntries(
    cases.map(([{ attributes }, place]) => {
      const inner = elements[place + 1];
      const outcome = inner?.name === "failure" || inner?.name === "skipped" ? inner : undefined;
      return [
        attributes["name"],
        outcome === undefined ? "passed" : (outcome.attributes["type"] ?? outcome.name),
      ];
    }),
  );
};
