'use strict';
(() => {
  const articles = [...document.querySelectorAll('article')];
  const form = document.querySelector('.filters');
  const search = document.getElementById('search');
  const count = document.getElementById('count');
  const left = document.getElementById('nothing-left');
  const entries = new Map([...document.querySelectorAll('[data-for]')].map((li) => [li.dataset.for, li]));
  const visible = () => articles.filter((article) => !article.hidden);

  const chosen = (name) =>
    new Set([...form.querySelectorAll(`[name=${name}]`)].filter((box) => box.checked).map((box) => box.value));

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const standings = chosen('standing');
    const kinds = chosen('kind');
    for (const article of articles) {
      const { standing, kind, text } = article.dataset;
      const fits = standings.has(standing) && kinds.has(kind) && words.every((word) => text.includes(word));
      article.hidden = !fits;
      const entry = entries.get(article.id);
      if (entry) entry.hidden = !fits;
    }
    const shown = visible().length;
    count.value = shown === articles.length ? '' : `${shown} of ${articles.length}`;
    left.hidden = shown > 0 || articles.length === 0;
  };

  const move = (by) => {
    const all = visible();
    if (all.length === 0) return;
    const now = all.indexOf(document.activeElement && document.activeElement.closest('article'));
    const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1);
    all[next].focus();
    all[next].scrollIntoView({ block: 'start' });
  };

  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === 'Escape') { search.value = ''; filter(); search.blur(); }
      return;
    }
    if (event.key === 'j') move(1);
    else if (event.key === 'k') move(-1);
    else if (event.key === '/') { event.preventDefault(); search.focus(); }
  });
  // `#q=words` is a link to a search.
  const query = /^#q=(.*)$/.exec(location.hash);
  if (query) search.value = decodeURIComponent(query[1]);
  filter();
  document.documentElement.dataset.ready = 'yes';
})();
