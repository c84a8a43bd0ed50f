// The console's one script. Without it everything works: links, forms, reload. It knows fixed ids and attributes of our
// own pages, and makes no HTML of texts: what it puts in comes as a parsed page of the console (no string becomes markup,
// which Trusted Types hold) or as text.
'use strict';
(() => {
  const root = document.documentElement;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // Times by the clocks of the reader.
  const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  const showTimes = (within) => {
    for (const time of all('time[datetime]', within)) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = time.dateTime;
      time.textContent = clock.format(at);
    }
  };

  // Light or dark, kept in this browser.
  const theme = (wanted) => {
    if (wanted) root.dataset.theme = wanted;
  };
  theme(localStorage.getItem('theme'));
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;

  // A question before what can't be undone.
  const ask = (form, button) => {
    const dialog = element('dialog');
    const words = element('p', form.dataset.sure);
    words.id = 'sure';
    dialog.setAttribute('aria-labelledby', 'sure');
    const row = element('p', '', 'tools');
    const no = element('button', 'Leave it');
    const yes = element('button', button ? button.textContent.trim() : 'Do it', button ? button.className : '');
    no.type = yes.type = 'button';
    no.onclick = () => dialog.close();
    yes.onclick = () => {
      form.dataset.agreed = '';
      dialog.close();
      form.requestSubmit(button || undefined);
    };
    dialog.onclose = () => dialog.remove();
    row.append(yes, no);
    dialog.append(words, row);
    document.body.append(dialog);
    dialog.showModal();
    no.focus();
  };
  addEventListener('submit', (event) => {
    const form = event.target;
    if (form.dataset.sure && form.dataset.agreed === undefined) {
      event.preventDefault();
      ask(form, event.submitter);
      return;
    }
    // A form is sent once, however often it is clicked.
    if (form.dataset.sent !== undefined) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = '';
  });
  addEventListener('pageshow', () => {
    for (const form of all('form')) {
      delete form.dataset.sent;
      delete form.dataset.agreed;
    }
  });

  addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    if (button.dataset.themeSwitch !== undefined) {
      const wanted = isDark() ? 'light' : 'dark';
      localStorage.setItem('theme', wanted);
      theme(wanted);
    }
    if (button.dataset.copy !== undefined) {
      const from = button.parentElement.querySelector('pre');
      navigator.clipboard.writeText(from.textContent).then(() => {
        button.textContent = 'Copied';
      });
    }
  });

  // A part of the page with another digest takes the place of the one that is there, unless somebody is in it.
  const isInUse = (part) => {
    const at = document.activeElement;
    return document.querySelector('dialog[open]') !== null
      || (at && at !== document.body && part.contains(at) && at.matches('input, textarea, select, button, summary'));
  };
  const announce = (before, part) => {
    const said = part.querySelector('[data-announce]');
    const old = before.querySelector('[data-announce]');
    if (said && old && said.textContent !== old.textContent) {
      document.getElementById('announced').textContent = said.textContent;
    }
  };
  const takeOver = (page) => {
    for (const before of all('[data-live]')) {
      const part = page.getElementById(before.id);
      if (!part || part.dataset.live === before.dataset.live || isInUse(before)) continue;
      const open = all('details[open][id]', before).map((it) => it.id);
      const focused = before.contains(document.activeElement) && document.activeElement.getAttribute('href');
      const fresh = document.adoptNode(part);
      showTimes(fresh);
      announce(before, fresh);
      before.replaceWith(fresh);
      for (const id of open) document.getElementById(id)?.setAttribute('open', '');
      if (focused) all('a', fresh).find((it) => it.getAttribute('href') === focused)?.focus({ preventScroll: true });
    }
  };
  // The browser parses the answer; an address of another page means that the session is over.
  const readAgain = () => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', location.pathname + location.search);
    request.responseType = 'document';
    request.timeout = 10000;
    request.onloadend = () => {
      const page = request.status === 200 && request.responseURL.startsWith(location.origin + location.pathname)
        ? request.response : null;
      if (page) takeOver(page);
      resolve(page !== null);
    };
    request.send();
  });

  let stream = null;
  let reading = false;
  let again = false;
  const state = (words) => {
    const place = document.getElementById('live-state');
    if (place) place.textContent = words;
  };
  const changed = async () => {
    if (reading) {
      again = true;
      return;
    }
    reading = true;
    do {
      again = false;
      state(await readAgain() ? ' Follows what happens.' : ' Not up to date: reload the page.');
      await new Promise((resolve) => setTimeout(resolve, 1000));
    } while (again);
    reading = false;
  };
  const follow = () => {
    if (document.hidden || stream) return;
    stream = new EventSource('/live');
    stream.onopen = changed;
    stream.addEventListener('changed', changed);
    stream.onerror = () => {
      state(' Not up to date: the daemon is not reached.');
      if (stream && stream.readyState === EventSource.CLOSED) stream = null;
    };
  };
  const rest = () => {
    stream?.close();
    stream = null;
  };

  root.dataset.script = '';
  showTimes(document);
  // What a form answered can't be read again.
  const isForm = document.querySelector('form[action="/search"], form[action="/erase/begin"]') !== null;
  if (root.dataset.follows !== undefined && !isForm) {
    follow();
    document.addEventListener('visibilitychange', () => (document.hidden ? rest() : follow()));
    addEventListener('pagehide', rest);
  }

  // A link's code stands in the fragment, which is sent to nobody; it leaves the address before it is posted.
  const login = document.getElementById('login');
  if (login && location.hash.length > 1) {
    document.getElementById('code').value = location.hash.slice(1);
    history.replaceState(null, '', location.pathname);
    login.requestSubmit();
  }
})();
