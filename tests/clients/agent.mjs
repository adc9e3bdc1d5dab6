// Asks models with the clients of their providers for Node, and prints what they return. The prompt is the argument.

import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const prompt = process.argv[2];
const messages = [{ role: "user", content: prompt }];

async function all(parts) {
  const found = [];
  for await (const part of parts) found.push(part);
  return found;
}

const chat = new OpenAI({ maxRetries: 0 }).chat.completions;
console.log("chat", (await chat.create({ model: "m-1", messages })).choices[0].message.content);
const chunks = await all(await chat.create({ model: "m-1", messages, stream: true }));
console.log("chat stream", chunks.map((chunk) => chunk.choices[0].delta.content));
try {
  await chat.create({ model: "m-1", messages: [{ role: "user", content: "fail" }] });
} catch (error) {
  console.log("error", error.status, error.message);
}

const anthropic = new Anthropic({ maxRetries: 0 });
const asked = { model: "c-1", max_tokens: 9, messages };
console.log("message", (await anthropic.messages.create(asked)).content[0].text);
console.log("message stream", await anthropic.messages.stream(asked).finalText());

const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat("m-2");
console.log("sdk", (await generateText({ model, prompt, maxRetries: 0 })).text);
console.log("sdk stream", await all(streamText({ model, prompt, maxRetries: 0 }).textStream));
