// Hides chapters, rows and series by workload and strategy. The choice stands in the address after #, as w= and s= for
// each box that is ticked and wq= and sq= for the texts, so a filtered report can be linked to. Made by script alone:
// without scripts there is nothing to see of it.
const chosenParts = {w: new Set(), s: new Set(), wq: '', sq: ''};
const titles = new Map();  // of workloads
const redraws = [];        // called when the choice has changed

const contains = (text, part) => text.toLowerCase().includes(part.toLowerCase());
const showsWorkload = name => (chosenParts.w.size === 0 || chosenParts.w.has(name)) &&
    (contains(name, chosenParts.wq) || contains(titles.get(name) ?? '', chosenParts.wq));
const showsStrategy = name => (chosenParts.s.size === 0 || chosenParts.s.has(name)) && contains(name, chosenParts.sq);
const filters = () => chosenParts.w.size + chosenParts.s.size > 0 || chosenParts.wq + chosenParts.sq !== '';

(() => {
  const sections = [...document.querySelectorAll('section[data-w]')];
  for (const section of sections) titles.set(section.dataset.w, section.querySelector('h2').textContent);
  const rows = [...document.querySelectorAll('tr[data-s]')];
  const names = [...new Set(rows.map(row => row.dataset.s))];
  if (sections.length === 0 || names.length === 0) return;

  const form = document.createElement('form');
  form.className = 'filter';
  form.setAttribute('role', 'search');
  form.setAttribute('aria-label', 'Filter');
  form.innerHTML = '<details><summary>Filter <output></output></summary><div class="choices"></div></details>';
  const status = form.querySelector('output');
  const boxes = {w: new Map(), s: new Map()};
  for (const [key, text, values] of [['w', 'Workloads', [...titles.keys()]], ['s', 'Strategies', names]]) {
    const group = document.createElement('fieldset');
    group.innerHTML = `<legend>${text}</legend><input type="search" placeholder="containing …" autocomplete="off" spellcheck="false"><div class="boxes"></div>`;
    const search = group.querySelector('input');
    search.setAttribute('aria-label', `${text} whose name contains`);
    search.addEventListener('input', () => { chosenParts[`${key}q`] = search.value; changed(); });
    boxes[`${key}q`] = search;
    for (const value of values) {
      const label = document.createElement('label'), box = document.createElement('input');
      box.type = 'checkbox';
      box.addEventListener('change', () => { box.checked ? chosenParts[key].add(value) : chosenParts[key].delete(value); changed(); });
      label.append(box, ` ${value}`);
      if (key === 'w') label.title = titles.get(value);
      boxes[key].set(value, box);
      group.querySelector('.boxes').append(label);
    }
    form.querySelector('.choices').append(group);
  }
  const all = document.createElement('button');
  Object.assign(all, {type: 'button', textContent: 'Show all', onclick: () => { clear('w', 's'); changed(); }});
  form.querySelector('.choices').append(all);
  form.addEventListener('submit', event => event.preventDefault());
  form.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return;
    form.querySelector('details').open = false;
    form.querySelector('summary').focus();
  });
  document.querySelector('header').after(form);
  // The bar stays at the top: what a link leads to comes to stand below it.
  new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${12 + (getComputedStyle(form).position === 'sticky' ? form.offsetHeight : 0)}px`; }).observe(form);

  function clear(...keys) {
    for (const key of keys) {
      chosenParts[key].clear();
      chosenParts[`${key}q`] = '';
    }
  }

  function apply() {
    for (const row of rows) row.hidden = !showsStrategy(row.dataset.s);
    for (const table of document.querySelectorAll('table')) {
      const body = [...table.tBodies[0].rows];
      const empty = body.every(row => row.hidden);
      (table.closest('.exhibit') ?? table.parentElement).hidden = empty;
      [...table.tHead.rows[0].cells].forEach((head, i) => {
        if (head.dataset.w === undefined) return;
        for (const row of table.rows) row.cells[i].hidden = !showsWorkload(head.dataset.w);
      });
    }
    let shown = 0;
    for (const section of sections) {
      section.hidden = !showsWorkload(section.dataset.w) || ![...section.querySelectorAll('tr[data-s]')].some(row => !row.hidden);
      shown += !section.hidden;
    }
    const hidden = new Set(sections.filter(section => section.hidden).map(section => section.dataset.w));
    for (const part of document.querySelectorAll('.findings > [data-w], nav [data-w]')) part.hidden = hidden.has(part.dataset.w);
    for (const key of ['w', 's']) {
      boxes[`${key}q`].value = chosenParts[`${key}q`];
      for (const [value, box] of boxes[key]) {
        box.checked = chosenParts[key].has(value);
        box.parentElement.hidden = !box.checked && !(contains(value, chosenParts[`${key}q`]) || (key === 'w' && contains(titles.get(value), chosenParts.wq)));
      }
    }
    const strategiesShown = names.filter(showsStrategy).length;
    status.textContent = `${shown} of ${sections.length} workloads, ${strategiesShown} of ${names.length} strategies shown`;
    form.classList.toggle('active', filters());
    for (const redraw of redraws) redraw();
  }

  function address(at) {
    const parts = new URLSearchParams();
    if (at) parts.append('at', at);
    for (const key of ['w', 's']) {
      for (const value of chosenParts[key]) parts.append(key, value);
      if (chosenParts[`${key}q`]) parts.append(`${key}q`, chosenParts[`${key}q`]);
    }
    return location.href.split('#')[0] + (filters() ? `#${parts}` : at ? `#${at}` : '#');
  }

  function changed() {
    history.replaceState(null, '', address());
    apply();
  }

  /** Makes what a link points to visible. */
  function reveal(target) {
    if (target.closest('[data-w]')?.hidden) {
      clear('w', 's');
      apply();
    }
    for (let part = target; part; part = part.parentElement) if (part.tagName === 'DETAILS') part.open = true;
    const row = target.querySelector('details');
    if (target.id.startsWith('table-') && row) row.open = true;
  }

  function go(target) {
    reveal(target);
    if (target.tabIndex < 0) target.tabIndex = -1;
    target.scrollIntoView();
    target.focus({preventScroll: true});
  }

  function read() {
    const text = location.hash.slice(1);
    if (!text.includes('=')) {
      const target = document.getElementById(decodeURIComponent(text));
      if (target) reveal(target);
      return;
    }
    const parts = new URLSearchParams(text);
    clear('w', 's');
    for (const key of ['w', 's']) {
      for (const value of parts.getAll(key)) if (boxes[key].has(value)) chosenParts[key].add(value);
      chosenParts[`${key}q`] = parts.get(`${key}q`) ?? '';
    }
    apply();
    const target = document.getElementById(parts.get('at') ?? '');
    if (target) go(target);
  }

  document.addEventListener('click', event => {
    const link = event.target.closest?.('a[href^="#"]');
    const target = link && document.getElementById(link.getAttribute('href').slice(1));
    if (!target) return;
    reveal(target);
    if (!filters()) return;
    event.preventDefault();
    history.pushState(null, '', address(target.id));
    go(target);
  });
  addEventListener('hashchange', read);
  apply();
  read();
})();
