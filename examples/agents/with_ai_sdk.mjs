// A loop of the AI SDK with a gateway as its MCP server: `node examples/agents/with_ai_sdk.mjs`, after
// `npm install ai @ai-sdk/mcp @ai-sdk/openai @ai-sdk/anthropic @ai-sdk/google`.
//
// The gateway is started by $GATEWAY_COMMAND. The model is $MODEL, at $OPENAI_BASE_URL with $OPENAI_API_KEY, asked by the
// Responses API; with API=openai_chat by Chat Completions, with API=anthropic_messages at $ANTHROPIC_BASE_URL, with
// API=gemini at $GOOGLE_GEMINI_BASE_URL.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const [command, ...args] = (process.env.GATEWAY_COMMAND ?? "mcp-gateway serve --profile ai-sdk").split(" ");
const prompt = process.env.PROMPT ?? "call charts__draw_chart {}\nThen tell me what you see.";

function model() {
  const name = process.env.MODEL ?? "gpt-5.5";
  switch (process.env.API) {
    case "openai_chat":
      return createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(name);
    case "anthropic_messages":
      return createAnthropic({ baseURL: process.env.ANTHROPIC_BASE_URL })(name);
    case "gemini":
      return createGoogleGenerativeAI({ baseURL: process.env.GOOGLE_GEMINI_BASE_URL })(name);
    default:
      return createOpenAI({ baseURL: process.env.OPENAI_BASE_URL })(name);
  }
}

const client = await createMCPClient({ transport: new StdioTransport({ command, args }) });
try {
  const answer = await generateText({
    model: model(),
    tools: await client.tools(),
    stopWhen: stepCountIs(60),
    providerOptions: { openai: { store: false } },
    prompt,
  });
  console.log(answer.text);
} finally {
  await client.close();
}
