// Converts DynamoDB's attribute values to plain JSON values and to and from the text of input fields.
import type { AttributeValue, Item } from "../api/types";

export const ATTRIBUTE_TYPES = ["S", "N", "BOOL", "NULL", "M", "L", "SS", "NS", "B", "BS"] as const;
export type TypeName = (typeof ATTRIBUTE_TYPES)[number];

export const TYPE_NAMES: Record<TypeName, string> = {
  S: "String",
  N: "Number",
  BOOL: "Boolean",
  NULL: "Null",
  M: "Map",
  L: "List",
  SS: "String set",
  NS: "Number set",
  B: "Binary",
  BS: "Binary set",
};

export function typeOf(value: AttributeValue): TypeName {
  return Object.keys(value)[0] as TypeName;
}

/** The plain JSON value. Numbers that JavaScript would round stay strings. */
export function toPlain(value: AttributeValue): unknown {
  if ("S" in value) return value.S;
  if ("N" in value) return plainNumber(value.N);
  if ("BOOL" in value) return value.BOOL;
  if ("NULL" in value) return null;
  if ("M" in value) return Object.fromEntries(Object.entries(value.M).map(([name, inner]) => [name, toPlain(inner)]));
  if ("L" in value) return value.L.map(toPlain);
  if ("SS" in value) return value.SS;
  if ("NS" in value) return value.NS.map(plainNumber);
  if ("B" in value) return value.B;
  return value.BS;
}

function plainNumber(text: string): number | string {
  const value = Number(text);
  return String(value) === text ? value : text;
}

/** One line of text for a table cell. */
export function toCellText(value: AttributeValue | undefined): string {
  if (value === undefined) return "";
  if ("S" in value) return value.S;
  if ("N" in value) return value.N;
  if ("BOOL" in value) return String(value.BOOL);
  if ("NULL" in value) return "null";
  return JSON.stringify(toPlain(value));
}

/** The text of the input field for a value; maps, lists and sets as JSON. */
export function toText(value: AttributeValue): string {
  if ("S" in value) return value.S;
  if ("N" in value) return value.N;
  if ("B" in value) return value.B;
  if ("BOOL" in value) return String(value.BOOL);
  if ("NULL" in value) return "";
  if ("M" in value) return JSON.stringify(value.M, null, 2);
  if ("L" in value) return JSON.stringify(value.L, null, 2);
  if ("SS" in value) return JSON.stringify(value.SS);
  if ("NS" in value) return JSON.stringify(value.NS);
  return JSON.stringify(value.BS);
}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Parses the text of an input field. */
export function fromText(type: TypeName, text: string): AttributeValue {
  switch (type) {
    case "S":
      return { S: text };
    case "N":
      if (!NUMBER.test(text.trim())) throw new Error(`“${text}” is not a number`);
      return { N: text.trim() };
    case "B":
      if (!BASE64.test(text.trim())) throw new Error("binary values must be Base64");
      return { B: text.trim() };
    case "BOOL":
      if (text !== "true" && text !== "false") throw new Error("the value must be true or false");
      return { BOOL: text === "true" };
    case "NULL":
      return { NULL: true };
    case "M":
      return validated({ M: parse(text, "a map in DynamoDB's JSON, like {\"name\": {\"S\": \"text\"}}") as Record<string, AttributeValue> });
    case "L":
      return validated({ L: parse(text, "a list in DynamoDB's JSON, like [{\"N\": \"1\"}]") as AttributeValue[] });
    default:
      return validated({ [type]: parse(text, "a JSON list of strings, like [\"a\", \"b\"]") } as unknown as AttributeValue);
  }
}

function parse(text: string, expected: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`expected ${expected}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Parses an item in DynamoDB's JSON. */
export function parseItem(text: string): Item {
  const value = parse(text, "an item in DynamoDB's JSON, like {\"name\": {\"S\": \"text\"}}");
  const item = validated({ M: value as Record<string, AttributeValue> });
  return (item as { M: Item }).M;
}

const DEPTH_MAX = 32;

function validated(value: AttributeValue, path = "", depth = 0): AttributeValue {
  const fail = (reason: string): never => {
    throw new Error(path ? `${path}: ${reason}` : reason);
  };
  if (depth > DEPTH_MAX) fail(`nested deeper than ${DEPTH_MAX} levels`);
  if (typeof value !== "object" || value === null || Array.isArray(value) || Object.keys(value).length !== 1) {
    fail('expected a typed value, like {"S": "text"}');
  }
  const [type, content] = Object.entries(value)[0] as [string, unknown];
  if (type === "M") {
    if (typeof content !== "object" || content === null || Array.isArray(content)) fail("M must be a map");
    for (const [name, inner] of Object.entries(content as Record<string, AttributeValue>)) validated(inner, path ? `${path}.${name}` : name, depth + 1);
  } else if (type === "L") {
    if (!Array.isArray(content)) fail("L must be a list");
    (content as AttributeValue[]).forEach((inner, index) => validated(inner, `${path}[${index}]`, depth + 1));
  } else if (type === "SS" || type === "NS" || type === "BS") {
    if (!Array.isArray(content) || content.length === 0 || content.some((inner) => typeof inner !== "string")) fail(`${type} must be a list of one or more strings`);
  } else if (type === "S" || type === "N" || type === "B") {
    if (typeof content !== "string") fail(`${type} must be a string`);
    if (type === "N" && !NUMBER.test(content as string)) fail(`“${String(content)}” is not a number`);
  } else if (type === "BOOL") {
    if (typeof content !== "boolean") fail("BOOL must be true or false");
  } else if (type === "NULL") {
    if (content !== true) fail("NULL must be true");
  } else fail(`unknown type ${type}`);
  return value;
}
