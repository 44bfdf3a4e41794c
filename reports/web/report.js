// Draws each figure of the page from the JSON beside its place, once it is scrolled near, and all of them for printing.
const kinds = {verdicts, cost, intervals, limits, distribution, latency, speedup, parts, bytes, fragmentation, pareto, timeline, growth, speed};
const byPlace = data => data.places.length > 1 ? [{name: 'place', label: data.axis, options: data.places.map(at => [at, at]), first: data.shown}]
                                               : [{name: 'place', options: [], first: data.places[0]}];
/** What a reader may choose above a chart. */
const choices = {
  distribution: data => {
    const ratios = data.rows.some(row => row.ratio.length > 0);
    return [...byPlace(data), {name: 'view', label: 'axis', first: ratios ? 'ratio' : 'zero',
            options: [...(ratios ? [['ratio', `ratio to ${data.baseline}`], ['spread', 'ratio / its own median']] : []), ['zero', `${data.unit} from 0`], ['near', `${data.unit}, as near as fits`]]}];
  },
  latency: () => [{name: 'view', label: 'show', first: 'all', options: [['all', 'all operations'], ['tail', 'the tail']]}],
  pareto: byPlace,
};

const tipBox = document.createElement('div');
tipBox.id = 'tip';
document.body.append(tipBox);
function showTip(lines, x, y) {
  tipBox.replaceChildren(...lines.map(([name, value]) => {
    const row = document.createElement('div'), key = document.createElement('span');
    key.textContent = name;
    row.append(key, value);
    return row;
  }));
  tipBox.classList.add('visible');
  const {offsetWidth: w, offsetHeight: h} = tipBox;
  tipBox.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - w - 8))}px`;
  tipBox.style.top = `${y + 16 + h > innerHeight ? Math.max(4, y - h - 12) : y + 16}px`;
}
function hideTip() { tipBox.classList.remove('visible'); }

class Figure {
  constructor(element) {
    this.element = element;
    this.holder = element.querySelector('.plot');
    this.caption = element.querySelector('figcaption').firstChild.textContent.trim();
    this.data = JSON.parse(element.querySelector('script').textContent);
    this.chosen = {};
    this.near = this.done = false;
    this.width = 0;
    element.dataset.kind = this.data.kind;
    this.addChoices();
    // Room for what will be drawn, so that the page does not move under a reader.
    const lines = new Set((this.data.rows ?? this.data.lines ?? []).map(row => row.s ?? row.label)).size;
    const rowwise = ['intervals', 'limits', 'parts', 'bytes', 'distribution', 'fragmentation', 'verdicts'].includes(this.data.kind);
    this.holder.style.minHeight = `${rowwise ? 60 + 27 * lines : this.data.kind === 'speed' ? 170 : 380}px`;
  }

  addChoices() {
    const bar = document.createElement('div');
    bar.className = 'tools';
    for (const {name, label, options, first} of choices[this.data.kind]?.(this.data) ?? []) {
      this.chosen[name] = first;
      if (options.length < 2) continue;
      const field = document.createElement('label'), select = document.createElement('select');
      for (const [value, text] of options) select.add(new Option(text, value, value === first, value === first));
      select.addEventListener('change', () => { this.chosen[name] = select.value; this.draw(); });
      field.append(`${label} `, select);
      bar.append(field);
    }
    if (bar.children.length > 0) this.holder.before(bar);
  }

  /** Drawn anew now where a reader sees it, else when he comes near. */
  touch() {
    this.done = false;
    if (this.near) this.draw();
  }

  shown() {
    const keep = row => (row.s === undefined || showsStrategy(row.s)) && (row.w === undefined || showsWorkload(row.w));
    const {rows, lines, ...rest} = this.data;
    return {...rest, ...(rows && {rows: rows.filter(keep)}), ...(lines && {lines: lines.filter(keep)})};
  }

  async draw() {
    const width = this.holder.clientWidth;
    if (width === 0) return;
    this.done = true;
    this.width = width;
    delete this.element.dataset.drawn;
    try {
      if (this.data.kind === 'map') {
        this.map ??= makeMap(this.holder, this.caption, this.data);
        this.map();
      } else {
        await this.drawSpec(width);
      }
      this.holder.style.minHeight = '';
      this.element.dataset.drawn = '';
    } catch (error) {
      this.holder.classList.add('broken');
      this.holder.textContent = `This chart could not be drawn (${error}); the table holds its figures.`;
      console.error(error);
    }
  }

  async drawSpec(width) {
    const data = this.shown();
    const turn = this.turn = (this.turn ?? 0) + 1;
    const made = (data.rows ?? data.lines).length > 0 ? kinds[data.kind](data, width, this.chosen) : null;
    if (made === null) {
      this.view?.finalize();
      this.view = undefined;
      this.holder.textContent = 'Nothing to draw here for this choice.';
      return;
    }
    const spec = {$schema: 'https://vega.github.io/schema/vega-lite/v6.json', description: this.caption, width, config,
                  autosize: {type: 'fit-x', contains: 'padding'}, padding: {left: 0, right: 12, top: 6, bottom: 4},
                  ...made};
    const place = document.createElement('div');
    // The interpreter instead of compiled expressions: the page's security policy forbids eval.
    const view = await vegaEmbed(place, spec, {
      ast: true, actions: false, renderer: 'svg', defaultStyle: false,
      tooltip: (_, event, item, text) => text ? showTip(JSON.parse(text), event.clientX, event.clientY) : hideTip(),
    });
    if (turn !== this.turn) return view.finalize();
    this.view?.finalize();
    this.view = view;
    this.holder.replaceChildren(place);
  }
}

const figures = [...document.querySelectorAll('figure')].map(element => new Figure(element));
const figureOf = new Map(figures.map(figure => [figure.holder, figure]));
redraws.push(() => figures.forEach(figure => figure.data.kind !== 'map' && figure.touch()));

const nearby = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries) {
    const figure = figureOf.get(target);
    figure.near = isIntersecting;
    if (isIntersecting && !figure.done) figure.draw();
  }
}, {rootMargin: '500px 0px'});
const resized = new ResizeObserver(entries => {
  for (const {target, contentRect} of entries) {
    const figure = figureOf.get(target);
    if (contentRect.width > 0 && Math.abs(figure.width - contentRect.width) >= 2 && figure.width > 0) figure.touch();
  }
});
for (const {holder} of figures) {
  nearby.observe(holder);
  resized.observe(holder);
}

// Maps bake their colours in; the others follow the theme by themselves.
const repaint = () => figures.forEach(figure => figure.map?.());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);

let opened = [];
addEventListener('beforeprint', () => {
  opened = [...document.querySelectorAll('main details:not([open])')];
  for (const details of opened) details.open = true;
  document.documentElement.classList.add('paper');
  for (const figure of figures) if (!figure.done) figure.draw();
  repaint();
});
addEventListener('afterprint', () => {
  for (const details of opened) details.open = false;
  document.documentElement.classList.remove('paper');
  repaint();
});
