// DynamoDB's attribute values: to plain values and back from what people type.
import type { AttributeValue, Item } from "../api/types";

export const TYPES = ["S", "N", "BOOL", "NULL", "M", "L", "SS", "NS", "B", "BS"] as const;
export type TypeName = (typeof TYPES)[number];

export const TYPE_NAMES: Record<TypeName, string> = {
  S: "Text",
  N: "Number",
  BOOL: "Yes or no",
  NULL: "Null",
  M: "Map",
  L: "List",
  SS: "Set of texts",
  NS: "Set of numbers",
  B: "Bytes",
  BS: "Set of bytes",
};

export function typeOf(value: AttributeValue): TypeName {
  return Object.keys(value)[0] as TypeName;
}

/** As JSON would have it. Numbers that a browser would round stay texts. */
export function plain(value: AttributeValue): unknown {
  if ("S" in value) return value.S;
  if ("N" in value) return plainNumber(value.N);
  if ("BOOL" in value) return value.BOOL;
  if ("NULL" in value) return null;
  if ("M" in value) return Object.fromEntries(Object.entries(value.M).map(([name, inner]) => [name, plain(inner)]));
  if ("L" in value) return value.L.map(plain);
  if ("SS" in value) return value.SS;
  if ("NS" in value) return value.NS.map(plainNumber);
  if ("B" in value) return value.B;
  return value.BS;
}

function plainNumber(text: string): number | string {
  const value = Number(text);
  return String(value) === text ? value : text;
}

/** One line for a cell. */
export function brief(value: AttributeValue | undefined): string {
  if (value === undefined) return "";
  if ("S" in value) return value.S;
  if ("N" in value) return value.N;
  if ("BOOL" in value) return String(value.BOOL);
  if ("NULL" in value) return "null";
  return JSON.stringify(plain(value));
}

/** What an input shows for a value; maps, lists and sets as JSON. */
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

/** The value that a text of this type means; an error says what is wrong with it. */
export function fromText(type: TypeName, text: string): AttributeValue {
  switch (type) {
    case "S":
      return { S: text };
    case "N":
      if (!NUMBER.test(text.trim())) throw new Error(`“${text}” is not a number`);
      return { N: text.trim() };
    case "B":
      if (!BASE64.test(text.trim())) throw new Error("bytes are written in Base64");
      return { B: text.trim() };
    case "BOOL":
      if (text !== "true" && text !== "false") throw new Error("it is true or false");
      return { BOOL: text === "true" };
    case "NULL":
      return { NULL: true };
    case "M":
      return checked({ M: parse(text, "a map in DynamoDB's JSON, like {\"name\": {\"S\": \"text\"}}") as Record<string, AttributeValue> });
    case "L":
      return checked({ L: parse(text, "a list in DynamoDB's JSON, like [{\"N\": \"1\"}]") as AttributeValue[] });
    default:
      return checked({ [type]: parse(text, "a list of texts in JSON, like [\"a\", \"b\"]") } as unknown as AttributeValue);
  }
}

function parse(text: string, wanted: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`it should be ${wanted}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** An item in DynamoDB's JSON. */
export function parseItem(text: string): Item {
  const value = parse(text, "an item in DynamoDB's JSON, like {\"name\": {\"S\": \"text\"}}");
  const item = checked({ M: value as Record<string, AttributeValue> });
  return (item as { M: Item }).M;
}

const DEPTH_MAX = 32;

function checked(value: AttributeValue, place = "", depth = 0): AttributeValue {
  const wrong = (what: string): never => {
    throw new Error(place ? `${place}: ${what}` : what);
  };
  if (depth > DEPTH_MAX) wrong(`it is nested deeper than ${DEPTH_MAX}`);
  if (typeof value !== "object" || value === null || Array.isArray(value) || Object.keys(value).length !== 1) {
    wrong('it should be a value with its type, like {"S": "text"}');
  }
  const [type, content] = Object.entries(value)[0] as [string, unknown];
  if (type === "M") {
    if (typeof content !== "object" || content === null || Array.isArray(content)) wrong("M holds a map");
    for (const [name, inner] of Object.entries(content as Record<string, AttributeValue>)) checked(inner, place ? `${place}.${name}` : name, depth + 1);
  } else if (type === "L") {
    if (!Array.isArray(content)) wrong("L holds a list");
    (content as AttributeValue[]).forEach((inner, index) => checked(inner, `${place}[${index}]`, depth + 1));
  } else if (type === "SS" || type === "NS" || type === "BS") {
    if (!Array.isArray(content) || content.length === 0 || content.some((inner) => typeof inner !== "string")) wrong(`${type} holds a list of one or more texts`);
  } else if (type === "S" || type === "N" || type === "B") {
    if (typeof content !== "string") wrong(`${type} holds a text`);
    if (type === "N" && !NUMBER.test(content as string)) wrong(`“${String(content)}” is not a number`);
  } else if (type === "BOOL") {
    if (typeof content !== "boolean") wrong("BOOL holds true or false");
  } else if (type === "NULL") {
    if (content !== true) wrong("NULL holds true");
  } else wrong(`there is no type ${type}`);
  return value;
}
