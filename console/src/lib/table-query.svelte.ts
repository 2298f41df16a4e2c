// The fields of the query form, and the request body that they make.
import type { AttributeValue, TableDescription, TableKeys } from "../api/types";
import { fromText, type TypeName } from "./attribute-values";

export const SORT_OPERATORS = ["=", "<", "<=", ">", ">=", "begins_with", "between"] as const;
export type SortOperator = (typeof SORT_OPERATORS)[number];

export const FILTER_OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "begins_with", "contains", "exists", "does not exist"] as const;
export type FilterOperator = (typeof FILTER_OPERATORS)[number];

export const FILTER_TYPES: TypeName[] = ["S", "N", "BOOL", "B"];

export interface TableRequest {
  index?: string;
  partition?: AttributeValue;
  sort?: { op: SortOperator; values: AttributeValue[] };
  filter?: { expression: string; names: Record<string, string>; values: Record<string, AttributeValue> };
  limit: number;
  descending?: boolean;
}

export class FilterForm {
  attribute = $state("");
  operator = $state<FilterOperator>("=");
  type = $state<TypeName>("S");
  value = $state("");

  get needsValue(): boolean {
    return this.operator !== "exists" && this.operator !== "does not exist";
  }
}

export class TableQueryForm {
  mode = $state<"query" | "scan">("scan");
  index = $state("");
  partition = $state("");
  operator = $state<SortOperator | "">("");
  first = $state("");
  second = $state("");
  descending = $state(false);
  filters = $state<FilterForm[]>([]);

  keys(table: TableDescription): TableKeys {
    return table.indexes.find(({ name }) => name === this.index)?.keys ?? table.keys;
  }

  addFilter(): void {
    this.filters.push(new FilterForm());
  }

  /** The request body; an error names the invalid field. */
  toRequest(table: TableDescription, limit: number): TableRequest {
    const keys = this.keys(table);
    const body: TableRequest = { limit };
    if (this.index) body.index = this.index;
    if (this.mode === "query") {
      body.partition = parseValue(keys.partition.name, keys.partition.type, this.partition);
      if (keys.sort && this.operator) {
        const texts = this.operator === "between" ? [this.first, this.second] : [this.first];
        const { name, type } = keys.sort;
        body.sort = { op: this.operator, values: texts.map((text) => parseValue(name, type, text)) };
      }
      body.descending = this.descending;
    }
    const filter = this.#filter();
    if (filter) body.filter = filter;
    return body;
  }

  #filter(): TableRequest["filter"] {
    const used = this.filters.filter(({ attribute }) => attribute.trim());
    if (used.length === 0) return undefined;
    const names: Record<string, string> = {};
    const values: Record<string, AttributeValue> = {};
    const conditions = used.map((filter, index) => {
      // Dots separate the names of nested attributes, as in `sensors.bme280_temp_c`.
      const steps = filter.attribute.trim().split(".");
      const path = steps.map((step, depth) => {
        const placeholder = `#f${index}_${depth}`;
        names[placeholder] = step;
        return placeholder;
      });
      const attribute = path.join(".");
      if (filter.operator === "exists") return `attribute_exists(${attribute})`;
      if (filter.operator === "does not exist") return `attribute_not_exists(${attribute})`;
      values[`:f${index}`] = parseValue(filter.attribute, filter.type, filter.value);
      if (filter.operator === "begins_with" || filter.operator === "contains") return `${filter.operator}(${attribute}, :f${index})`;
      return `${attribute} ${filter.operator} :f${index}`;
    });
    return { expression: conditions.join(" AND "), names, values };
  }
}

function parseValue(field: string, type: TypeName, text: string): AttributeValue {
  try {
    return fromText(type, text);
  } catch (error) {
    throw new Error(`${field}: ${error instanceof Error ? error.message : String(error)}.`);
  }
}
