// Asks an agent with OpenAI's client for Node. Rows go to stdout as check<TAB>ok|FAIL<TAB>detail; `done` is last.

import assert from 'node:assert/strict';
import OpenAI from 'openai';

const baseURL = process.env.BASE_URL;
const client = new OpenAI({ baseURL, apiKey: process.env.TOKEN });
const other = new OpenAI({ baseURL, apiKey: process.env.OTHER_TOKEN });

const user = (content) => ({ role: 'user', content });
const ask = (messages, more = {}, options = {}, by = client) =>
  by.chat.completions.create({ model: 'vocative', messages, ...more }, options);
const textOf = (answer) => answer.choices[0].message.content;

async function refused(kind, call) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof kind, `${error}`);
    return error;
  }
  throw new Error(`no ${kind.name}`);
}

const checks = {
  async 'lists agents as models'() {
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    assert.deepEqual(models, ['vocative']);
    const error = await refused(OpenAI.NotFoundError, () => client.models.retrieve('gpt-5'));
    assert.equal(error.code, 'model_not_found');
  },
  async 'is answered'() {
    const answer = await ask([user('what is up?')]);
    assert.match(textOf(answer), /what is up\?/);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.ok(answer.vocative.conversation);
  },
  async 'is told while it is written'() {
    const stream = await ask([user('tell me a story')], { stream: true, stream_options: { include_usage: true } });
    let text = '';
    let last;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      last = chunk;
    }
    assert.match(text, /tell me a story/);
    assert.ok(last.usage.total_tokens >= 0);
  },
  async 'keeps a conversation'() {
    const kept = { metadata: { conversation: 'node' } };
    const [first, second] = [await ask([user('one')], kept), await ask([user('two')], kept)];
    assert.equal(first.vocative.conversation, second.vocative.conversation);
    const ofOther = await ask([user('three')], kept, {}, other);
    assert.notEqual(ofOther.vocative.conversation, first.vocative.conversation);
  },
  async 'reads a given history'() {
    const history = [
      { role: 'developer', content: 'Speak like a pirate.' },
      user('one'),
      { role: 'assistant', content: 'two' },
      user([{ type: 'text', text: 'three' }]),
    ];
    assert.match(textOf(await ask(history, { user: 'bob' })), /three/);
  },
  async 'asks once under one name'() {
    const name = { headers: { 'Idempotency-Key': 'node-1' } };
    const [first, again] = [await ask([user('hello')], {}, name), await ask([user('hello')], {}, name)];
    assert.equal(first.id, again.id);
    const error = await refused(OpenAI.UnprocessableEntityError, () => ask([user('bye')], {}, name));
    assert.equal(error.code, 'idempotency_key_reused');
  },
  async 'is refused what is not served'() {
    for (const [field, value] of Object.entries({ temperature: 0.5, max_tokens: 5, n: 2, seed: 1 })) {
      const error = await refused(OpenAI.BadRequestError, () => ask([user('hi')], { [field]: value }));
      assert.deepEqual([error.param, error.code], [field, 'unsupported_parameter']);
    }
  },
  async 'is told of a wrong token'() {
    const stranger = new OpenAI({ baseURL, apiKey: 'wrong' });
    const error = await refused(OpenAI.AuthenticationError, () => ask([user('hi')], {}, {}, stranger));
    assert.equal(error.code, 'invalid_api_key');
  },
};

let failed = false;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`${name}\tok\t`);
  } catch (error) {
    failed = true;
    console.log(`${name}\tFAIL\t${String(error).replace(/\s+/g, ' ').slice(0, 300)}`);
  }
}
console.log('done');
process.exitCode = failed ? 1 : 0;
