// Generates src/api.ts, the types of requests and answers, of docs/api.json.
//
//     node scripts/generate-types.mjs            writes the file
//     node scripts/generate-types.mjs --check    exits with status 1 if it is not current
//
// It fails on what it does not understand, so that no type is guessed.

import { readFileSync, writeFileSync } from "node:fs";

const documentFile = new URL("../../../docs/api.json", import.meta.url);
const typesFile = new URL("../src/api.ts", import.meta.url);

/** Keywords that restrict values in a way that types cannot express, or that only describe them. */
const IGNORED = new Set(["description", "format", "minimum", "maximum", "pattern", "uniqueItems", "default"]);

const SIMPLE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

/** Returns a schema as a type. `indent` is the indentation of the line on which it begins. */
function typeOf(schema, indent = "") {
  const used = new Set(Object.keys(schema).filter((key) => !IGNORED.has(key)));
  const take = (key) => (used.delete(key) ? schema[key] : undefined);
  const alternatives = [];
  const reference = take("$ref");
  if (reference !== undefined) alternatives.push(nameOf(reference));
  const values = take("enum");
  const types = [take("type") ?? []].flat();
  if (values !== undefined) alternatives.push(...values.map((value) => JSON.stringify(value)));
  for (const type of values === undefined ? types : []) {
    if (type === "array") {
      alternatives.push(`Array<${typeOf(take("items"), indent)}>`);
    } else if (type === "object") {
      const more = take("additionalProperties");
      take("propertyNames");
      alternatives.push(objectOf(take("properties"), take("required") ?? [], more, indent));
    } else if (SIMPLE[type]) {
      alternatives.push(SIMPLE[type]);
    } else {
      throw new Error(`unknown type ${JSON.stringify(type)}`);
    }
  }
  const parts = take("allOf");
  if (parts !== undefined) alternatives.push(parts.map((part) => inParentheses(typeOf(part, indent))).join(" & "));
  const choices = take("oneOf");
  if (choices !== undefined) alternatives.push(...choices.map((choice) => typeOf(choice, indent)));
  if (used.size > 0) throw new Error(`unknown keywords ${[...used].join(", ")} in ${JSON.stringify(schema)}`);
  return alternatives.length === 0 ? "unknown" : [...new Set(alternatives)].join(" | ");
}

function inParentheses(type) {
  return type.includes(" | ") && !type.startsWith("{") ? `(${type})` : type;
}

function nameOf(reference) {
  const prefix = "#/components/schemas/";
  if (!reference.startsWith(prefix)) throw new Error(`${reference} is not a schema of this document`);
  return reference.slice(prefix.length);
}

function objectOf(properties, required, more, indent) {
  if (properties === undefined) return `Record<string, ${more === undefined ? "unknown" : typeOf(more, indent)}>`;
  if (more !== undefined && more !== false) throw new Error("an object with both named and other members");
  const lines = membersOf(properties, required, `${indent}  `);
  return lines.length === 0 ? "Record<string, never>" : ["{", ...lines, `${indent}}`].join("\n");
}

function membersOf(properties, required, indent) {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const optional = required.includes(name) ? "" : "?";
    return [...commentOf(schema, indent), `${indent}${key}${optional}: ${typeOf(schema, indent)};`];
  });
}

/** A reference in a choice with null describes the member. */
function descriptionOf(schema) {
  return schema.description ?? schema.oneOf?.find((choice) => choice.description)?.description;
}

function commentOf(schema, indent) {
  const description = descriptionOf(schema);
  if (description === undefined) return [];
  const lines = description.replaceAll("*/", "* /").split("\n");
  if (lines.length === 1) return [`${indent}/** ${lines[0]} */`];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`];
}

function declarationOf(name, schema) {
  const isInterface = schema.type === "object" && schema.properties !== undefined;
  const type = typeOf(schema);
  const declaration = isInterface ? `export interface ${name} ${type}` : `export type ${name} = ${type};`;
  return [...commentOf(schema, ""), declaration].join("\n");
}

/** The request and the answer of each operation, by its id. */
function operationsOf(paths) {
  const json = (content) => nameOf(content["application/json"].schema.$ref);
  const lines = Object.values(paths).flatMap(({ post }) => [
    `  /** ${post.summary}. */`,
    `  ${JSON.stringify(post.operationId)}: { request: ${json(post.requestBody.content)}; answer: ${json(post.responses[200].content)} };`,
  ]);
  return ["/** The requests and answers of all operations. */", "export interface Operations {", ...lines, "}"].join("\n");
}

export function generated(document) {
  const { components, paths } = document;
  const declarations = Object.entries(components.schemas).map(([name, schema]) => declarationOf(name, schema));
  const head = "// Generated from docs/api.json by scripts/generate-types.mjs. Do not edit.";
  return [head, ...declarations, operationsOf(paths)].join("\n\n") + "\n";
}

const types = generated(JSON.parse(readFileSync(documentFile, "utf8")));
if (process.argv.includes("--check")) {
  if (readFileSync(typesFile, "utf8") !== types) {
    console.error('src/api.ts is not that of docs/api.json; "npm run generate" writes it');
    process.exitCode = 1;
  }
} else {
  writeFileSync(typesFile, types);
}
