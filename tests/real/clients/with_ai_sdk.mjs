// The MCP client of the AI SDK, as far as its model: `with_ai_sdk.mjs JOB`, see `tests/real/conftest.py`.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';

const job = JSON.parse(process.argv[2]);

function transport() {
  if (job.transport !== 'stdio') {
    return { type: job.transport, url: job.url };
  }
  const [command, ...args] = job.command;
  return new StdioTransport({ command, args, env: job.env });
}

const client = await createMCPClient({ transport: transport() });
const tools = await client.tools();
const tool = tools[job.tool];
const output = await tool.execute(job.arguments, { toolCallId: '1', messages: [] });
const { value } = tool.toModelOutput({ toolCallId: '1', input: job.arguments, output });
const outcome = {
  revision: client.initializeResult?.protocolVersion ?? null,
  tools: Object.keys(tools),
  texts: value.filter((part) => part.type === 'text').map((part) => part.text),
  images: value.filter((part) => part.type === 'file').map((part) => [part.mediaType, part.data.data]),
};
await client.close();
console.log(JSON.stringify(outcome));
