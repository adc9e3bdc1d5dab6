// Asks a server with the AI SDK of Vercel, and prints the spans of that as OTLP in JSON.
//
// usage: node --input-type=module - URL < ai-sdk.mjs, where the packages ai, @ai-sdk/openai, @opentelemetry/api,
// @opentelemetry/sdk-trace-node and @opentelemetry/otlp-transformer are installed; for version 7, @ai-sdk/otel as well

import { context, trace } from "@opentelemetry/api";
import { createOpenAI } from "@ai-sdk/openai";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import * as sdk from "ai";

const { embed, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } = sdk;
// Before version 7, it needs no package for this.
if (sdk.registerTelemetry) sdk.registerTelemetry(new (await import("@ai-sdk/otel")).OpenTelemetry());

const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();

const openai = createOpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "sk-not-a-key-0123456789" });
const telemetry = { isEnabled: true, functionId: "asks" };
const model = openai.chat("m-1");
const asked = { model, telemetry, experimental_telemetry: telemetry, maxRetries: 0 };

const agent = trace.getTracer("asks").startSpan("agent");
await context.with(trace.setSpan(context.active(), agent), ask);
agent.end();

// These have the paths of this machine.
for (const span of exporter.getFinishedSpans())
  for (const event of span.events) delete event.attributes?.["exception.stacktrace"];
const bytes = JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans());
console.log(new TextDecoder().decode(bytes));

async function ask() {
  await generateText({ ...asked, system: "be short", prompt: "hello", temperature: 0.5, maxOutputTokens: 9 });
  const stream = streamText({ ...asked, messages: [{ role: "user", content: "hello \u{1f600}" }] });
  for await (const _ of stream.textStream);
  const weather = tool({
    description: "Tells the weather",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: async () => "rain",
  });
  await generateText({ ...asked, prompt: "the weather?", tools: { weather }, stopWhen: stepCountIs(2) });
  await embed({ model: openai.embedding("e-1"), value: "hello", telemetry, experimental_telemetry: telemetry });
  await generateText({ ...asked, prompt: "fail" }).catch(() => {});
  await generateObject({ ...asked, schema: jsonSchema({ type: "object" }), prompt: "an object" }).catch(() => {});
}
