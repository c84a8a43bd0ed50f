// Slack's official Node SDK (@slack/bolt in Socket Mode, @slack/web-api) against the loopback Slack.

import bolt from '@slack/bolt';
import { SocketModeClient } from '@slack/socket-mode';
import { ErrorCode, WebClient } from '@slack/web-api';

import { addresses, Control, expect, runChecks, thrown, waitFor } from './people.mjs';

const SLACK = addresses('slack');
const PEOPLE = new Control(SLACK.control_url);
const METADATA = { event_type: 'sandbox_check', event_payload: { id: '42' } };
const QUIET = bolt.LogLevel.ERROR;

const clientOptions = { slackApiUrl: SLACK.api_url };
const client = new WebClient(SLACK.bot_token, { ...clientOptions, logLevel: QUIET });
const app = new bolt.App({
  token: SLACK.bot_token,
  appToken: SLACK.app_token,
  socketMode: true,
  logLevel: QUIET,
  clientOptions,
});
const heardEdits = [];

app.event('app_mention', ({ event, say }) =>
  say({ text: `heard: ${event.text}`, thread_ts: event.thread_ts ?? event.ts }));
app.event('message', async ({ event, say }) => {
  if (event.subtype === 'message_changed') heardEdits.push(event.message.text);
  else if (event.channel_type === 'im') await say(`direct: ${event.text}`);
});
app.command('/ask', async ({ ack, respond, command }) => {
  await ack();
  await respond({ text: `commanded: ${command.text}`, response_type: 'in_channel' });
});
app.action('approve', async ({ ack, body, client: web }) => {
  await ack();
  await web.chat.update({ channel: body.channel.id, ts: body.message.ts, text: 'approved' });
});

async function posts(channel) {
  return (await PEOPLE.look('posts', { channel })).posts;
}

function waitForAnswer(channel, threadTs, text) {
  const isAnswer = (post) => post.text === text && post.thread_ts === threadTs && post.bot_id;
  return waitFor(`the answer "${text}"`, async () => (await posts(channel)).find(isAnswer));
}

/** Ann mentions the bot; its answer must stand in that thread. */
async function ask(text, more = {}) {
  const question = { channel: '#general', user: 'ann', text: `@vocative ${text}`, ...more };
  const { ts } = await PEOPLE.do('post', question);
  await waitForAnswer('#general', more.thread_ts ?? ts, `heard: <@${SLACK.bot_user_id}> ${text}`);
}

async function threadReply() {
  const { ts } = await PEOPLE.do('post', { channel: '#general', user: 'bob', text: 'a root' });
  await ask('in this thread?', { thread_ts: ts });
}

async function directMessage() {
  await PEOPLE.do('post', { channel: 'D0ANN', user: 'ann', text: '1 < 2 & so on' });
  await waitForAnswer('D0ANN', null, 'direct: 1 &lt; 2 &amp; so on');
}

async function editByAPerson() {
  const { ts } = await PEOPLE.do('post', { channel: '#general', user: 'ann', text: 'tpyo' });
  await PEOPLE.do('edit', { channel: '#general', ts, text: 'typo' });
  await waitFor('the edit', () => heardEdits.includes('typo'));
}

async function slashCommand() {
  await PEOPLE.do('command', { channel: '#ops', user: 'ann', command: '/ask', text: 'anything' });
  await waitForAnswer('#ops', null, 'commanded: anything');
}

async function button() {
  const element = {
    type: 'button', action_id: 'approve', value: '1', text: { type: 'plain_text', text: 'Approve' },
  };
  const blocks = [{ type: 'actions', block_id: 'b', elements: [element] }];
  const { ts } = await client.chat.postMessage({ channel: 'C0OPS', text: 'approve?', blocks });
  await PEOPLE.do('click', { channel: 'C0OPS', user: 'ann', ts, block_id: 'b', action_id: 'approve' });
  await waitForAnswer('#ops', null, 'approved');
}

async function historyWithMetadata() {
  const { ts } = await client.chat.postMessage({ channel: 'C0OPS', text: 'marked', metadata: METADATA });
  const at = { channel: 'C0OPS', latest: ts, oldest: ts, inclusive: true, limit: 1 };
  const found = await client.conversations.history({ ...at, include_all_metadata: true });
  expect('metadata', found.messages[0].metadata, METADATA);
  const plain = await client.conversations.history(at);
  expect('metadata unless asked for', 'event_payload' in (plain.messages[0].metadata ?? {}), false);
}

async function repliesByPage() {
  const { ts } = await client.chat.postMessage({ channel: 'C0OPS', text: 'root' });
  for (const number of [0, 1, 2]) {
    await client.chat.postMessage({ channel: 'C0OPS', text: `reply ${number}`, thread_ts: ts });
  }
  const texts = [];
  for await (const page of client.paginate('conversations.replies', { channel: 'C0OPS', ts, limit: 2 })) {
    texts.push(...page.messages.map((message) => message.text));
  }
  // Whether the root is repeated on every page is the server's choice.
  expect('replies', texts.filter((text) => text !== 'root'), ['reply 0', 'reply 1', 'reply 2']);
}

async function editAndDelete() {
  const { ts } = await client.chat.postMessage({ channel: 'C0OPS', text: 'first' });
  const current = async () => (await posts('#ops')).find((post) => post.ts === ts);
  await client.chat.update({ channel: 'C0OPS', ts, text: 'second' });
  const edited = await current();
  expect('text', [edited.text, edited.edited !== null], ['second', true]);
  await client.chat.delete({ channel: 'C0OPS', ts });
  expect('deleted', (await current()).deleted, true);
}

async function fileUpload() {
  const file = Buffer.from('a,b');
  await client.filesUploadV2({ channel_id: 'C0OPS', filename: 't.csv', title: 'T', file });
  await waitFor('the file', async () =>
    (await posts('#ops')).some((post) => post.files.some((it) => it.title === 'T')));
}

async function streamHelper() {
  const { ts } = await PEOPLE.do('post', { channel: '#ops', user: 'ann', text: 'tell me' });
  const streamer = client.chatStream({
    channel: 'C0OPS', thread_ts: ts, recipient_user_id: 'U0ANN', recipient_team_id: 'T0ACME', buffer_size: 4,
  });
  for (const word of ['one ', 'two ', 'three']) await streamer.append({ markdown_text: word });
  await streamer.stop();
  await waitFor('the stream', async () => (await posts('#ops')).some((it) => it.text === 'one two three'));
}

async function lookUps() {
  expect('name', (await client.users.info({ user: 'U0ANN' })).user.name, 'ann');
  expect('channel', (await client.conversations.info({ channel: 'C0GENERAL' })).channel.name, 'general');
  const [names, types] = [[], 'public_channel'];
  let pages = 0;
  for await (const page of client.paginate('conversations.list', { limit: 2, types })) {
    pages += 1;
    names.push(...page.channels.map((channel) => channel.name));
  }
  expect('channels by page', names.includes('general') && names.includes('ops') && pages > 1, true);
  expect('scopes', (await client.auth.test()).response_metadata.scopes.includes('chat:write'), true);
}

async function typedErrors() {
  const post = (channel) => () => client.chat.postMessage({ channel, text: 'x' });
  const nowhere = await thrown(post('C0NOWHERE'));
  expect('code', [nowhere.code, nowhere.data.error], [ErrorCode.PlatformError, 'channel_not_found']);
  expect('error', (await thrown(post('C0ELSEWHERE'))).data.error, 'not_in_channel');
  const stranger = new WebClient('xoxb-unknown', { ...clientOptions, logLevel: QUIET });
  expect('error', (await thrown(() => stranger.auth.test())).data.error, 'invalid_auth');
}

async function rateLimit() {
  const limited = { method: 'chat.postMessage', kind: 'rate_limited', retry_after_s: 1 };
  await PEOPLE.do('fault', limited);
  const hasty = new WebClient(SLACK.bot_token,
    { ...clientOptions, logLevel: QUIET, rejectRateLimitedCalls: true });
  const refused = await thrown(() => hasty.chat.postMessage({ channel: 'C0OPS', text: 'x' }));
  expect('error', [refused.code, refused.retryAfter], [ErrorCode.RateLimitedError, 1]);
  await PEOPLE.do('fault', limited);
  const patient = await client.chat.postMessage({ channel: 'C0OPS', text: 'after the wait' });
  expect('ok', patient.ok, true);
}

function reconnect(reason) {
  return async () => {
    const before = hellos;
    await PEOPLE.do('disconnect', { reason });
    await waitFor('a new hello', () => hellos > before);
    await ask(`still there after ${reason}?`);
  };
}

async function duplicateEvent() {
  await PEOPLE.do('fault', { method: 'event', kind: 'duplicate', count: 1 });
  await ask('twice delivered?');
}

/** A second socket of the same app, by the bare Socket Mode client: events go to either. */
async function twoSockets() {
  const second = new SocketModeClient({ appToken: SLACK.app_token, clientOptions, logLevel: QUIET });
  let heard = 0;
  second.on('slack_event', async ({ ack }) => {
    heard += 1;
    await ack();
  });
  await second.start();
  const isShared = async () => (await PEOPLE.look('state')).open_sockets >= 2;
  await waitFor('the second socket', isShared);
  await waitFor('an event on the second socket', async () => {
    await PEOPLE.do('post', { channel: '#general', user: 'bob', text: 'who hears this?' });
    return heard > 0;
  });
  await second.disconnect();
  await waitFor('one socket', async () => (await PEOPLE.look('state')).open_sockets === 1);
}

async function nothingLeft() {
  // What was on its way when a socket ended waits for its retry, a minute after the first one.
  await PEOPLE.do('redeliver');
  await waitFor('every acknowledgement', async () => (await PEOPLE.look('state')).unacked === 0);
  const state = await PEOPLE.look('state');
  expect('violations', state.violations, []);
  expect('lost', state.lost, []);
}

let hellos = 0;
app.receiver.client.on('connected', () => {
  hellos += 1;
});
await app.start();
const failures = await runChecks([
  ['mention answered in its thread', () => ask('is it up?')],
  ['reply in a thread', threadReply],
  ['direct message', directMessage],
  ['edit by a person is heard', editByAPerson],
  ['slash command, response_url', slashCommand],
  ['button', button],
  ['history with metadata', historyWithMetadata],
  ['replies by page', repliesByPage],
  ['edit and delete', editAndDelete],
  ['file upload', fileUpload],
  ['stream helper', streamHelper],
  ['look-ups', lookUps],
  ['typed errors', typedErrors],
  ['rate limit', rateLimit],
  ['reconnect: refresh_requested', reconnect('refresh_requested')],
  ['reconnect: warning', reconnect('warning')],
  ['reconnect: reset', reconnect('abort')],
  ['duplicate delivery', duplicateEvent],
  ['two sockets', twoSockets],
  ['no violation, nothing lost', nothingLeft],
]);
process.exit(failures ? 1 : 0);
