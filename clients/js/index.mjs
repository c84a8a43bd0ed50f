// Asks agents of a Vocative daemon over its API (docs/API.md), and follows their runs in order. No dependencies: fetch,
// streams and crypto are those of Node 20, Deno, Bun and browsers. A browser may use it through a server of its own only: the
// API refuses requests of web pages.

/** A refusal of the API: what is wrong, and what to do. */
export class VocativeError extends Error {
  constructor(status, body) {
    super(body?.error ? `${body.error}; ${body.advice}` : `the API answered ${status}`);
    this.name = 'VocativeError';
    this.status = status;
    this.advice = body?.advice;
  }
}

const ENDINGS = new Set(['finished', 'failed', 'cancelled', 'interrupted']);
const WAIT_FIRST_MS = 250;
const WAIT_MAX_MS = 10_000;

export class Vocative {
  #url;
  #token;

  /** @param {{ url: string, token: string }} options `url` like `http://127.0.0.1:8087` */
  constructor({ url, token }) {
    this.#url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  /**
   * Asks an agent. The question is on the daemon's disk when this resolves. Tried again under the same key until the daemon
   * answers, it is asked once.
   *
   * @param {string} text
   * @param {{ agent?: string, model?: string, conversation?: string, history?: { role: 'user' | 'assistant', text: string }[],
   *   context?: string, user?: string, instructions?: string, tools?: string[], key?: string, signal?: AbortSignal }} options
   * @returns {Promise<{ run: string, conversation: string, turn: string, agent: string, is_known: boolean }>}
   */
  async ask(text, { key = crypto.randomUUID(), signal, ...rest } = {}) {
    return this.#once('/v1/runs', { text, ...rest }, key, signal);
  }

  /**
   * What happens in a run, in order and each event once, until it has ended: through broken connections and restarts.
   *
   * @param {string} run
   * @param {{ after?: string, signal?: AbortSignal }} options
   * @returns {AsyncGenerator<{ id?: string, event: string, data: any }>}
   */
  async *follow(run, { after, signal } = {}) {
    let last = after;
    let wait = WAIT_FIRST_MS;
    while (true) {
      try {
        const headers = last === undefined ? {} : { 'Last-Event-ID': last };
        const response = await this.#send(`/v1/runs/${run}/events`, { headers, signal });
        if (response.status === 204) return;
        for await (const told of events(response.body)) {
          wait = WAIT_FIRST_MS;
          last = told.id ?? last;
          yield told;
          if (ENDINGS.has(told.event)) return;
        }
      } catch (error) {
        if (!isPassing(error) || signal?.aborted) throw error;
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, WAIT_MAX_MS);
    }
  }

  /**
   * Asks, and waits for the answer. `onText` hears all of the text so far whenever it grows or begins anew.
   *
   * @returns {Promise<{ text: string, run: string, conversation: string, state: string }>}
   */
  async answer(text, { onText, ...options } = {}) {
    const { run, conversation } = await this.ask(text, options);
    let [said, step] = ['', 0];
    for await (const { event, data } of this.follow(run, { signal: options.signal })) {
      if (event === 'snapshot') [said, step] = [data.text, data.step ?? step];
      else if (event === 'restarted') said = '';
      else if (event === 'text') {
        said = data.step === step ? said + data.text : data.text;
        step = data.step;
      } else if (event === 'finished') return { text: said, run, conversation, state: event };
      else if (ENDINGS.has(event)) throw new Error(`the run ${run} ended without an answer: ${event}`);
      else continue;
      onText?.(said);
    }
    // Who comes back after the end is told nothing more; the conversation has it.
    const { turns } = await this.turns(conversation, { limit: 1 });
    return { text: turns.at(-1)?.text ?? '', run, conversation, state: 'finished' };
  }

  /** Says something without asking; it is kept once under its key. */
  say(conversation, text, { key = crypto.randomUUID(), signal } = {}) {
    return this.#once(`/v1/conversations/${conversation}/messages`, { text }, key, signal);
  }

  /** Begins another course of a conversation, from one of its messages on (the `seq` of a turn); `conversation` of the answer is the one to ask in. */
  fork(conversation, at, { key = crypto.randomUUID(), signal } = {}) {
    return this.#once(`/v1/conversations/${conversation}/fork`, { at }, key, signal);
  }

  /** Stops a run. */
  stop(run) {
    return this.#json(`/v1/runs/${run}/stop`, { method: 'POST', body: '{}' });
  }

  /** What was said in a conversation, oldest first; `older_before` of the answer is `before` of the next page. */
  turns(conversation, { limit = 50, before } = {}) {
    const query = new URLSearchParams({ limit: String(limit), ...(before === undefined ? {} : { before: String(before) }) });
    return this.#json(`/v1/conversations/${conversation}/turns?${query}`);
  }

  /** The conversations that the token sees, the most recently active first. */
  conversations({ limit = 50, before } = {}) {
    const query = new URLSearchParams({ limit: String(limit), ...(before === undefined ? {} : { before }) });
    return this.#json(`/v1/conversations?${query}`);
  }

  /** Sends something until the daemon answers; under its key it counts once. */
  #once(path, what, key, signal) {
    const body = JSON.stringify(what);
    return this.#persist(signal, () => this.#json(path, { method: 'POST', body, signal, headers: { 'Idempotency-Key': key } }));
  }

  async #json(path, init = {}) {
    return (await this.#send(path, init)).json();
  }

  async #send(path, { headers = {}, ...init } = {}) {
    const response = await fetch(this.#url + path, {
      ...init,
      headers: { Authorization: `Bearer ${this.#token}`, ...headers },
    });
    if (response.ok) return response;
    throw new VocativeError(response.status, await response.json().catch(() => undefined));
  }

  /** Calls until the daemon answers for good. */
  async #persist(signal, call) {
    for (let wait = WAIT_FIRST_MS; ; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      try {
        return await call();
      } catch (error) {
        if (!isPassing(error) || signal?.aborted) throw error;
      }
      await pause(wait, signal);
    }
  }
}

/** Whether trying again may help: the daemon is not reached, or not ready. */
function isPassing(error) {
  if (error instanceof VocativeError) return error.status === 503 || error.status === 502 || error.status === 504;
  return error?.name === 'TypeError';
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** Server-sent events of a body: blocks that end with an empty line, fields `id`, `event` and `data`. */
export async function* events(body) {
  let text = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    let end;
    while ((end = text.indexOf('\n\n')) >= 0) {
      const fields = {};
      for (const line of text.slice(0, end).split('\n')) {
        const colon = line.indexOf(': ');
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      text = text.slice(end + 2);
      if (fields.event) yield { id: fields.id, event: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
