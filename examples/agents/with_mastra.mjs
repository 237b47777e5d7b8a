// An agent of Mastra with a gateway as its MCP server: `node examples/agents/with_mastra.mjs`, after
// `npm install @mastra/core @mastra/mcp`.
//
// The gateway is started by $GATEWAY_COMMAND. The model is $MODEL, such as openai/gpt-5.5 or anthropic/claude-sonnet-5,
// at the address and with the key that its provider's variables name. With $MODEL_URL, it is asked there by Chat
// Completions, as providers are that offer OpenAI's API.

import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

const [command, ...args] = (process.env.GATEWAY_COMMAND ?? "mcp-gateway serve --profile mastra").split(" ");
const prompt = process.env.PROMPT ?? "call gateway_charts__draw_chart {}\nThen tell me what you see.";
const id = process.env.MODEL ?? "openai/gpt-5.5";
const url = process.env.MODEL_URL;

const client = new MCPClient({ servers: { gateway: { command, args } } });
try {
  const agent = new Agent({
    id: "agent",
    name: "Agent",
    instructions: "Use the tools of the gateway.",
    model: url ? { id, url, apiKey: process.env.OPENAI_API_KEY } : id,
    tools: await client.listTools(),
  });
  const answer = await agent.generate(prompt, { maxSteps: 60, providerOptions: { openai: { store: false } } });
  console.log(answer.text);
} finally {
  await client.disconnect();
}
