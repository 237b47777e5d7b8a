// The official TypeScript SDK's client: `with_typescript_sdk.mjs JOB`, see `tests/real/conftest.py`.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const job = JSON.parse(process.argv[2]);

function transport() {
  switch (job.transport) {
    case 'stdio': {
      const [command, ...args] = job.command;
      return new StdioClientTransport({ command, args, env: job.env });
    }
    case 'http':
      return new StreamableHTTPClientTransport(new URL(job.url));
    case 'sse':
      return new SSEClientTransport(new URL(job.url));
  }
}

const mode = { auto: 'auto', legacy: 'legacy' }[job.mode] ?? { pin: job.mode };
const client = new Client({ name: 'typescript-sdk', version: '1' }, { versionNegotiation: { mode } });
await client.connect(transport());
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: job.tool, arguments: job.arguments });
const outcome = {
  revision: client.getNegotiatedProtocolVersion(),
  tools: tools.map((tool) => tool.name),
  texts: content.filter((block) => block.type === 'text').map((block) => block.text),
  images: content.filter((block) => block.type === 'image').map((block) => [block.mimeType, block.data]),
};
await client.close();
console.log(JSON.stringify(outcome));
