// grammY, with its long polling, against the loopback Telegram.

import { Bot, GrammyError, InputFile } from 'grammy';

import { addresses, Control, expect, runChecks, thrown, waitFor } from './people.mjs';

const TELEGRAM = addresses('telegram');
const PEOPLE = new Control(TELEGRAM.control_url);
const [ANN, BOB] = [5001, 5002];
const [SUPERGROUP, FORUM, TOPIC] = [-1001234567890, -1001234567891, 163];

const client = { apiRoot: TELEGRAM.api_url };
const bot = new Bot(TELEGRAM.token, { client });
const heardEdits = [];

bot.on('edited_message:text', (ctx) => {
  heardEdits.push(ctx.editedMessage.text);
});
// Answers what is addressed to the bot: a mention, a reply to it, a private chat.
bot.on('message:text', async (ctx) => {
  const { message, me } = ctx;
  const isMentioned = ctx.entities('mention').some((entity) => entity.text === `@${me.username}`);
  const isReply = message.reply_to_message?.from?.id === me.id;
  if (message.chat.type !== 'private' && !isMentioned && !isReply) return;
  await ctx.reply(`heard: ${message.text}`, { reply_parameters: { message_id: message.message_id } });
});

function posts(chat) {
  return PEOPLE.look('posts', { chat });
}

async function postOf(chat, messageId) {
  return (await posts(chat)).find((post) => post.message_id === messageId);
}

/** Ann writes; the bot's answer must reply to her message. Gives the answer. */
async function ask(chat, text, more = {}) {
  const { message_id: asked } = await PEOPLE.do('say', { chat, user: ANN, text, ...more });
  const isAnswer = (post) => post.by_bot && post.reply_to === asked && post.text === `heard: ${text}`;
  const answer = await waitFor(`the answer to "${text}"`, async () => (await posts(chat)).find(isAnswer));
  expect('topic', answer.thread, more.topic ?? null);
  return answer;
}

async function replyToTheBot() {
  const answer = await ask(SUPERGROUP, '@vocative_bot first');
  await ask(SUPERGROUP, 'and second?', { reply_to: answer.message_id });
}

async function unaddressed() {
  const count = async () => (await posts(SUPERGROUP)).filter((post) => post.by_bot).length;
  const before = await count();
  await PEOPLE.do('say', { chat: SUPERGROUP, user: ANN, text: 'not for the bot' });
  await ask(SUPERGROUP, '@vocative_bot but this is');
  expect('answers', (await count()) - before, 1);
}

async function editByAPerson() {
  const { message_id } = await PEOPLE.do('say', { chat: SUPERGROUP, user: ANN, text: 'tpyo' });
  await PEOPLE.do('edit', { chat: SUPERGROUP, message_id, text: 'typo' });
  await waitFor('the edit', () => heardEdits.includes('typo'));
}

async function formatted() {
  const html = '😀 <b>bold</b> and <a href="https://example.org/">a link</a> <code>x &lt; 1</code>';
  const sent = await bot.api.sendMessage(SUPERGROUP, html, { parse_mode: 'HTML' });
  expect('text', sent.text, '😀 bold and a link x < 1');
  const seen = (await postOf(SUPERGROUP, sent.message_id)).entities;
  const spans = seen.map(({ type, offset, length }) => [type, offset, length]);
  expect('entities', spans, [['bold', 3, 4], ['text_link', 12, 6], ['code', 19, 5]]);
  const markdown = { parse_mode: 'MarkdownV2' };
  expect('MarkdownV2', (await bot.api.sendMessage(SUPERGROUP, '*bold* 1\\.5', markdown)).text, 'bold 1.5');
}

async function entitiesArray() {
  const entities = [{ type: 'pre', offset: 3, length: 4, language: 'rust' }];
  const sent = await bot.api.sendMessage(SUPERGROUP, '😀 fn x', { entities });
  const [{ type, offset, length, language }] = sent.entities;
  expect('entities', [type, offset, length, language], ['pre', 3, 4, 'rust']);
}

async function editAndDelete() {
  const { message_id } = await bot.api.sendMessage(SUPERGROUP, 'first');
  const edit = () => bot.api.editMessageText(SUPERGROUP, message_id, 'second');
  expect('edit_date', typeof (await edit()).edit_date, 'number');
  const post = await postOf(SUPERGROUP, message_id);
  expect('seen', [post.text, post.edited], ['second', true]);
  const same = await thrown(edit);
  expect('error', same.description.startsWith('Bad Request: message is not modified'), true);
  await bot.api.deleteMessage(SUPERGROUP, message_id);
  expect('deleted', (await postOf(SUPERGROUP, message_id)).deleted, true);
}

async function document() {
  const file = new InputFile(new TextEncoder().encode('a,b\n1,2\n'), 't.csv');
  const sent = await bot.api.sendDocument(SUPERGROUP, file, { caption: 'the table' });
  expect('document', [sent.document.file_name, sent.caption], ['t.csv', 'the table']);
}

async function smallMethods() {
  const { message_id } = await bot.api.sendMessage(SUPERGROUP, 'look here');
  const topic = { message_thread_id: TOPIC };
  expect('action', await bot.api.sendChatAction(FORUM, 'typing', topic), true);
  const thumb = [{ type: 'emoji', emoji: '👍' }];
  expect('reaction', await bot.api.setMessageReaction(SUPERGROUP, message_id, thumb), true);
  const commands = [{ command: 'ask', description: 'Ask something' }];
  expect('commands', await bot.api.setMyCommands(commands), true);
  expect('my commands', await bot.api.getMyCommands(), commands);
  expect('chat', (await bot.api.getChat(FORUM)).is_forum, true);
  expect('member', (await bot.api.getChatMember(SUPERGROUP, ANN)).user.first_name, 'Ann');
  expect('webhook', (await bot.api.getWebhookInfo()).url, '');
}

async function refused(call, code, description) {
  const error = await thrown(call);
  expect('class', error instanceof GrammyError, true);
  const isWorded = error.description.startsWith(description);
  expect(`"${error.description}"`, [error.error_code, isWorded], [code, true]);
  return error;
}

async function typedErrors() {
  const send = (text, more) => () => bot.api.sendMessage(SUPERGROUP, text, more);
  const nowhere = () => bot.api.editMessageText(SUPERGROUP, 99_999_999, 'x');
  await refused(nowhere, 400, 'Bad Request: message to edit not found');
  const reply = { reply_parameters: { message_id: 99_999_999 } };
  await refused(send('x', reply), 400, 'Bad Request: message to be replied not found');
  await refused(send('<b>x', { parse_mode: 'HTML' }), 400, "Bad Request: can't parse entities");
  await refused(send('x'.repeat(4097)), 400, 'Bad Request: message is too long');
  await refused(() => bot.api.sendMessage(BOB, 'x'), 403, 'Forbidden: ');
  const stranger = new Bot('123456789:wrong', { client });
  await refused(() => stranger.api.getMe(), 401, 'Unauthorized');
}

async function rateLimit() {
  await PEOPLE.do('fault', { method: 'sendMessage', fault: 'rate_limited', retry_after_s: 7 });
  const limited = await refused(() => bot.api.sendMessage(SUPERGROUP, 'x'), 429, 'Too Many Requests');
  expect('retry_after', limited.parameters.retry_after, 7);
}

/** grammY ends on 409 by design, so that one is not among these. */
async function pollingSurvives() {
  const faults = [{ fault: 'gateway', code: 502 }, { fault: 'reset_before' }];
  for (const fault of faults) await PEOPLE.do('fault', { method: 'getUpdates', ...fault });
  await ask(SUPERGROUP, '@vocative_bot still there?');
  const areOver = async () => (await PEOPLE.look('state')).faults_applied >= faults.length;
  await waitFor('every fault', areOver);
  await ask(SUPERGROUP, '@vocative_bot and now?');
}

async function allConfirmed() {
  await waitFor('every update to be confirmed', async () =>
    (await PEOPLE.look('state')).pending_updates === 0);
}

let ended = null;
bot.start({ timeout: 5 }).catch((error) => {
  ended = error;
});
const failures = await runChecks([
  ['mention answered as a reply', () => ask(SUPERGROUP, '😀 @vocative_bot is it up?')],
  ['reply to the bot', replyToTheBot],
  ['private chat', () => ask(ANN, 'just us')],
  ['topic reply', () => ask(FORUM, '@vocative_bot in the topic?', { topic: TOPIC })],
  ['unaddressed is not answered', unaddressed],
  ['edit by a person is heard', editByAPerson],
  ['formatted: HTML, MarkdownV2', formatted],
  ['entities array', entitiesArray],
  ['edit and delete', editAndDelete],
  ['document', document],
  ['small methods', smallMethods],
  ['typed errors', typedErrors],
  ['rate limit', rateLimit],
  ['polling survives 502, reset', pollingSurvives],
  ['every update confirmed', allConfirmed],
  ['polling did not end', () => expect('end of polling', ended?.message ?? null, null)],
]);
process.exit(failures ? 1 : 0);
