// Asks an agent with our own client (clients/js). Rows as in check.mjs.

import assert from 'node:assert/strict';
import { Vocative, VocativeError, events } from './client/index.mjs';

const url = process.env.BASE_URL.replace(/\/v1$/, '');
const ann = new Vocative({ url, token: process.env.TOKEN });
const bob = new Vocative({ url, token: process.env.OTHER_TOKEN });

const checks = {
  async 'is answered, and told while it is written'() {
    const heard = [];
    const { text, conversation } = await ann.answer('what is up?', { onText: (soFar) => heard.push(soFar) });
    assert.match(text, /what is up\?/);
    assert.equal(heard.at(-1), text);
    const { turns } = await ann.turns(conversation);
    assert.deepEqual(turns.map((turn) => turn.text), ['what is up?', text]);
  },
  async 'asks once under one key'() {
    const [one, two] = [await ann.ask('hello', { key: 'js-1' }), await ann.ask('hello', { key: 'js-1' })];
    assert.equal(one.run, two.run);
    assert.deepEqual([one.is_known, two.is_known], [false, true]);
  },
  async 'follows from where it was'() {
    const { run } = await ann.ask('tell me a story');
    const told = [];
    for await (const event of ann.follow(run)) told.push(event);
    assert.equal(told.at(-1).event, 'finished');
    const ids = told.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
    assert.deepEqual(ids, [...ids].sort((one, two) => one - two));
    for await (const event of ann.follow(run, { after: told.at(-1).id })) assert.fail(event.event);
  },
  async 'is told of what is not there for it'() {
    const { run, conversation } = await ann.ask('my colour?');
    for (const call of [() => bob.turns(conversation), () => bob.stop(run), () => bob.follow(run).next()]) {
      await assert.rejects(call, (error) => error instanceof VocativeError && error.status === 404);
    }
  },
  async 'reads events however they are cut'() {
    const bytes = new TextEncoder().encode('id: 1\nevent: text\ndata: {"text":"é\\n"}\n\n: still here\n\nevent: ready\ndata: {}\n\n');
    const body = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    const told = [];
    for await (const event of events(body)) told.push(event);
    assert.deepEqual(told, [
      { id: '1', event: 'text', data: { text: 'é\n' } },
      { id: undefined, event: 'ready', data: {} },
    ]);
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
