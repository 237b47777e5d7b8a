// The AI SDK with its MCP client; see `tests/serving/model_proxy/test_matrix.py`.

import { readFileSync } from 'node:fs';

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText } from 'ai';

const apiKey = 'no-key';
const models = {
  chat: ({ url, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat(model),
  compatible: ({ url, model }) => createOpenAICompatible({ name: 'own', baseURL: `${url}/v1`, apiKey })(model),
  responses: ({ url, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses(model),
  messages: ({ url, model }) => createAnthropic({ baseURL: `${url}/v1`, apiKey })(model),
  gemini: ({ url, model }) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })(model),
};

async function attempt(job) {
  const client = await createMCPClient({ transport: { type: 'http', url: job.mcp } });
  try {
    const request = {
      model: models[job.loop](job),
      tools: await client.tools(),
      prompt: job.prompt,
      maxRetries: 0,
      stopWhen: isStepCount(5),
    };
    if (!job.streamed) {
      return (await generateText(request)).text;
    }
    let failed = null;
    const result = streamText({ ...request, onError: ({ error }) => { failed = error; } });
    await result.consumeStream();
    if (failed) {
      throw failed;
    }
    return await result.text;
  } finally {
    await client.close();
  }
}

globalThis.AI_SDK_LOG_WARNINGS = false;
const outcomes = {};
for (const job of JSON.parse(readFileSync(0, 'utf8')).cases) {
  try {
    outcomes[job.id] = { answer: await attempt(job) };
  } catch (error) {
    outcomes[job.id] = { raised: `${error.name}: ${error.message}`.slice(0, 2000) };
  }
}
console.log(JSON.stringify(outcomes));
