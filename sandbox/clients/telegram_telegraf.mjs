// Telegraf, by long polling and then by a webhook that answers with a method, against the loopback Telegram.

import { createServer } from 'node:http';

import { Markup, Telegraf, TelegramError } from 'telegraf';

import { addresses, Control, expect, runChecks, thrown, waitFor } from './people.mjs';

const TELEGRAM = addresses('telegram');
const PEOPLE = new Control(TELEGRAM.control_url);
const [ANN, BOB, SUPERGROUP] = [5001, 5002, -1001234567890];

function makeBot(webhookReply) {
  const telegram = { apiRoot: TELEGRAM.api_url, webhookReply };
  const bot = new Telegraf(TELEGRAM.token, { telegram });
  bot.command('start', (ctx) => ctx.reply('started'));
  bot.command('type', (ctx) => ctx.sendChatAction('typing'));
  bot.action('retry:1', (ctx) => ctx.answerCbQuery('on it'));
  bot.hears(/@vocative_bot/, (ctx) =>
    ctx.reply(`heard: ${ctx.message.text}`, { reply_parameters: { message_id: ctx.message.message_id } }));
  return bot;
}

const bot = makeBot(false);
const posts = (chat) => PEOPLE.look('posts', { chat });

async function waitForText(chat, text) {
  return waitFor(`the post "${text}"`, async () =>
    (await posts(chat)).find((post) => post.by_bot && !post.deleted && post.text === text));
}

async function mention() {
  await PEOPLE.do('say', { chat: SUPERGROUP, user: ANN, text: '@vocative_bot up?' });
  await waitForText(SUPERGROUP, 'heard: @vocative_bot up?');
}

async function command() {
  await PEOPLE.do('say', { chat: ANN, user: ANN, text: '/start' });
  await waitForText(ANN, 'started');
}

async function inlineButton() {
  const keyboard = Markup.inlineKeyboard([Markup.button.callback('Retry', 'retry:1')]);
  const { message_id } = await bot.telegram.sendMessage(SUPERGROUP, 'failed', keyboard);
  const press = { chat: SUPERGROUP, user: ANN, message_id, button: 'Retry' };
  const { callback_id: id } = await PEOPLE.do('press', press);
  const answer = await waitFor('the answer', async () => (await PEOPLE.look('callback', { id })).answer);
  expect('answer', answer.text, 'on it');
  const other = Markup.inlineKeyboard([Markup.button.callback('Again', 'retry:1')]);
  await bot.telegram.editMessageReplyMarkup(SUPERGROUP, message_id, undefined, other.reply_markup);
  const post = (await posts(SUPERGROUP)).find((it) => it.message_id === message_id);
  expect('keyboard', post.keyboard, { inline_keyboard: [[{ text: 'Again', callback_data: 'retry:1', hide: false }]] });
}

async function documentAndDownload() {
  const source = Buffer.from('a,b\n');
  const sent = await bot.telegram.sendDocument(ANN, { source, filename: 't.csv' }, { caption: 'table' });
  expect('caption', sent.caption, 'table');
  const link = await bot.telegram.getFileLink(sent.document.file_id);
  expect('bytes', await (await fetch(link)).text(), 'a,b\n');
  const edited = await bot.telegram.editMessageCaption(ANN, sent.message_id, undefined, 'seen');
  expect('edited', edited.caption, 'seen');
}

async function album() {
  const media = ['one', 'two'].map((name) =>
    ({ type: 'document', media: { source: Buffer.from(name), filename: `${name}.txt` } }));
  const sent = await bot.telegram.sendMediaGroup(ANN, media);
  expect('album', [sent.length, new Set(sent.map((it) => it.media_group_id)).size], [2, 1]);
}

async function copies() {
  const { message_id } = await PEOPLE.do('say', { chat: SUPERGROUP, user: BOB, text: 'as Bob said' });
  const copied = await bot.telegram.copyMessage(ANN, SUPERGROUP, message_id);
  expect('copy', Object.keys(copied), ['message_id']);
  await waitForText(ANN, 'as Bob said');
}

async function typedErrors() {
  const refused = await thrown(() => bot.telegram.sendMessage(BOB, 'x'));
  expect('error', [refused instanceof TelegramError, refused.code], [true, 403]);
}

/** The same bot behind a webhook: what it says comes in the answer to the update. */
async function webhookReply() {
  bot.stop();
  await PEOPLE.do('knobs', { take_loopback_webhooks: true });
  const behind = makeBot(true);
  const server = createServer(behind.webhookCallback('/hook'));
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const url = `http://127.0.0.1:${server.address().port}/hook`;
  await behind.telegram.setWebhook(url);
  await PEOPLE.do('say', { chat: ANN, user: ANN, text: '@vocative_bot behind a webhook?' });
  await waitForText(ANN, 'heard: @vocative_bot behind a webhook?');
  // Telegraf puts methods into the answer whose result nobody needs.
  await PEOPLE.do('say', { chat: ANN, user: ANN, text: '/type' });
  const isShown = async () => (await PEOPLE.look('state')).actions.some(([chat]) => chat === ANN);
  await waitFor('the action', isShown);
  const { records } = await PEOPLE.look('journal', { kind: 'frame_in', name: 'webhook' });
  const isSaid = records.some((it) => it.body.includes('sendChatAction'));
  expect('said in the answer', isSaid, true);
  await waitFor('no pending update', async () => (await PEOPLE.look('state')).pending_updates === 0);
  await behind.telegram.deleteWebhook();
  server.close();
}

bot.launch().catch((error) => { console.error(error); });
const failures = await runChecks([
  ['mention answered', mention],
  ['command', command],
  ['inline button', inlineButton],
  ['document, download, caption', documentAndDownload],
  ['album', album],
  ['copy', copies],
  ['typed errors', typedErrors],
  ['webhook answers with a method', webhookReply],
]);
process.exit(failures ? 1 : 0);
