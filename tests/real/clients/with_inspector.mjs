// The command line of MCP Inspector: `with_inspector.mjs JOB`, see `tests/real/conftest.py`.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const job = JSON.parse(process.argv[2]);
const inspector = fileURLToPath(new URL('../../../node_modules/.bin/mcp-inspector', import.meta.url));
const era = { auto: 'auto', legacy: 'legacy' }[job.mode] ?? 'modern';
const target = job.transport === 'stdio' ? ['--', ...job.command] : ['--transport', job.transport, '--server-url', job.url];
const shared = ['--cli', '--quiet', '--format', 'json', '--protocol-era', era];
const variables = Object.entries(job.env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);

function ask(...request) {
  const command = [inspector, ...shared, ...request, ...variables, ...target];
  return JSON.parse(execFileSync(process.execPath, command, { encoding: 'utf8' })).result;
}

// A stdio server is started for each of the two.
const { tools } = ask('--method', 'tools/list');
const { content } = ask('--method', 'tools/call', '--tool-name', job.tool, '--tool-args-json', JSON.stringify(job.arguments));
const outcome = {
  revision: null,
  tools: tools.map((tool) => tool.name),
  texts: content.filter((block) => block.type === 'text').map((block) => block.text),
  images: content.filter((block) => block.type === 'image').map((block) => [block.mimeType, block.data]),
};
console.log(JSON.stringify(outcome));
