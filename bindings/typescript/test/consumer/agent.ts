import OpenAI from "openai";

/** Asks a model which label fits a ticket. */
export async function labelOf(ticket: string): Promise<string> {
  const openai = new OpenAI({ maxRetries: 0 });
  const answer = await openai.chat.completions.create({
    model: "m-1",
    messages: [
      { role: "system", content: "be short" },
      { role: "user", content: ticket },
    ],
  });
  return answer.choices[0]?.message.content ?? "";
}

/** Asks for an explanation, and returns its parts as they arrive. */
export async function explanationOf(ticket: string): Promise<string[]> {
  const openai = new OpenAI({ maxRetries: 0 });
  const parts = await openai.chat.completions.create({
    model: "m-1",
    stream: true,
    messages: [{ role: "user", content: ticket }],
  });
  const texts: string[] = [];
  for await (const part of parts) texts.push(part.choices[0]?.delta.content ?? "");
  return texts;
}
