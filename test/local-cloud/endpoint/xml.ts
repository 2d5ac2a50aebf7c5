/** The content of a response. An array becomes `<item>` elements. Undefined fields are left out. */
export type XmlValue =
  | string
  | number
  | boolean
  | Date
  | undefined
  | readonly XmlValue[]
  | XmlObject;
export interface XmlObject {
  readonly [name: string]: XmlValue;
}

const namespace = "http://ec2.amazonaws.com/doc/2016-11-15/";
const declaration = `<?xml version="1.0" encoding="UTF-8"?>\n`;

export function answerXml(action: string, requestId: string, answer: XmlObject): string {
  const body = element("requestId", requestId) + fieldsXml(answer);
  return `${declaration}<${action}Response xmlns="${namespace}">${body}</${action}Response>`;
}

export function errorXml(code: string, message: string, requestId: string): string {
  const error = { Errors: { Error: { Code: code, Message: message } }, RequestID: requestId };
  return `${declaration}<Response>${fieldsXml(error)}</Response>`;
}

function fieldsXml(fields: XmlObject): string {
  return Object.entries(fields)
    .map(([name, value]) => element(name, value))
    .join("");
}

function element(name: string, value: XmlValue): string {
  return value === undefined ? "" : `<${name}>${contentXml(value)}</${name}>`;
}

function contentXml(value: Exclude<XmlValue, undefined>): string {
  if (value instanceof Date) return value.toISOString();
  if (isList(value)) return value.map((item) => element("item", item)).join("");
  if (typeof value === "object") return fieldsXml(value);
  return escapeText(String(value));
}

function isList(value: XmlValue): value is readonly XmlValue[] {
  return Array.isArray(value);
}

function escapeText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("\r", "&#13;");
}
