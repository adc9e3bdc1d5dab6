import { readFileSync } from "node:fs";

interface Schema {
  $ref?: string;
  allOf?: Schema[];
  oneOf?: Schema[];
  type?: string | string[];
  enum?: unknown[];
  pattern?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
}

const document = JSON.parse(readFileSync(new URL("../../../docs/api.json", import.meta.url), "utf8")) as {
  components: { schemas: Record<string, Schema> };
};

/** Returns why a value does not have the type of a schema of docs/api.json; nothing if it has. */
export function defectsOf(name: string, value: unknown): string[] {
  return defects({ $ref: `#/components/schemas/${name}` }, value, name);
}

function defects(schema: Schema, value: unknown, at: string): string[] {
  const found: string[] = [];
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1) ?? "";
    const other = document.components.schemas[name];
    found.push(...(other === undefined ? [`${at}: no schema ${name}`] : defects(other, value, at)));
  }
  for (const part of schema.allOf ?? []) found.push(...defects(part, value, at));
  const choices = (schema.oneOf ?? []).map((choice) => defects(choice, value, at));
  if (choices.length > 0 && choices.every((choice) => choice.length > 0)) found.push(...(choices[0] ?? []));
  const types = [schema.type ?? []].flat();
  if (types.length > 0 && !types.some((type) => isOf(type, value))) found.push(`${at}: not ${types.join(" or ")}`);
  if (schema.enum !== undefined && !schema.enum.includes(value)) found.push(`${at}: ${String(value)} is not in the enum`);
  if (typeof value === "string" && schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) {
    found.push(`${at}: ${value} does not match ${schema.pattern}`);
  }
  if (Array.isArray(value) && schema.items !== undefined) {
    const items = schema.items;
    value.forEach((item, index) => found.push(...defects(items, item, `${at}[${index}]`)));
  } else if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    found.push(...membersOf(schema, value as Record<string, unknown>, at));
  }
  return found;
}

function membersOf(schema: Schema, value: Record<string, unknown>, at: string): string[] {
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name} is missing`);
  const members = Object.entries(value).flatMap(([name, member]) => {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    return known === undefined ? [] : defects(known, member, `${at}.${name}`);
  });
  return [...missing, ...members];
}

function isOf(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}
