// An agent with a tool, made with the AI SDK for Node. It prints what it saw, in order, as lines of JSON. The prompt is the
// argument.

import { createOpenAI } from "@ai-sdk/openai";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";

const saw = (what) => console.log(JSON.stringify(what));
const prompt = process.argv[2];
saw({ asked: prompt });

const weather = tool({
  description: "Returns the weather in a city.",
  inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
  execute: async ({ city }) => {
    saw({ call: "weather", arguments: { city } });
    const result = `18 degrees in ${city}`;
    saw({ result });
    return result;
  },
});
const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat("m-2");
const answer = streamText({ model, prompt, tools: { weather }, stopWhen: stepCountIs(5), maxRetries: 0 });
saw({ text: await answer.text });
