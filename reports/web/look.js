// What all charts share: each strategy's look, number formats, axes. Colours are CSS variables, so the theme follows by
// itself.
const strategies = JSON.parse(document.getElementById('strategies')?.textContent ?? '[]');
const ink = 'var(--ink)', soft = 'var(--soft)', line = 'var(--line)';
const hues = Array.from({length: 12}, (_, i) => `var(--s${i})`);
const shapes = ['circle', 'square', 'triangle-up', 'diamond', 'cross', 'triangle-down', 'triangle-right', 'triangle-left'];
const verdictHues = {
  faster: 'var(--good)', slower: 'var(--bad)', same: ink, inconclusive: 'var(--warn)', baseline: soft, failed: 'var(--bad)', leaks: 'var(--bad)',
};
const font = 'system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

const config = {
  background: 'transparent', font, view: {stroke: null}, aria: false,
  axis: {labelColor: soft, titleColor: soft, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 'normal', gridColor: line,
         domainColor: soft, tickColor: soft, titlePadding: 8, labelFont: font, titleFont: font, labelLimit: 170, labelFlush: false},
  legend: {labelColor: ink, titleColor: soft, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 'normal', labelFont: font,
           titleFont: font, symbolSize: 60, orient: 'bottom', title: null, labelLimit: 240, columnPadding: 16, offset: 12},
};

/** The strategy's look, the same in every chart of the page; the baseline is drawn in ink, its A/A twin in grey. */
function look(name, data) {
  const peers = strategies.filter(s => s.kind === data.of && !s.twin);
  const own = strategies.find(s => s.name === name && s.kind === data.of) ?? {control: false, twin: false};
  const i = Math.max(0, peers.indexOf(own));
  return {hue: name === data.baseline ? ink : own.twin ? soft : hues[i % hues.length], shape: own.twin ? 'cross' : shapes[i % shapes.length],
          label: own.control && !own.twin ? `${name} (control)` : name, dash: own.twin ? [2, 3] : own.control ? [5, 3] : [1, 0]};
}
const labelled = (rows, data) => rows.map(row => ({...row, label: look(row.s, data).label}));

const number = value => value === null || value === undefined ? '–' : Number(value.toPrecision(3)).toString();
const range = (low, high) => `${number(low)} to ${number(high)}`;
const ratio = row => row.low === null ? number(row.ratio) : `${number(row.ratio)} (${range(row.low, row.high)})`;
const span = values => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

/** Of every decade 1, or 1, 2 and 5, or more: the most that fit. */
function ticks(low, high) {
  const inside = steps => {
    const all = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
      for (const m of steps) all.push(Number(`${m}e${e}`));
    return all.filter(t => t >= low * 0.999 && t <= high * 1.001);
  };
  return [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5]].map(inside).find(values => values.length <= 8) ?? inside([1]);
}
const plainLabels = "format(datum.value, datum.value >= 1e6 ? '.2~s' : datum.value >= 1 ? ',~f' : '~g')";

/** An axis of positive values: logarithmic where they differ by more than `steep`, else from 0. */
function positiveAxis(values, title, steep = 2) {
  const [low, high] = span(values);
  const log = low > 0 && high / low >= steep;
  const from = low * 0.85, to = high * 1.18;
  return {
    type: 'quantitative', title: log ? `${title} (log scale)` : title,
    scale: log ? {type: 'log', nice: false, domain: [from, to]} : {zero: true},
    axis: log ? {values: ticks(from, to), labelExpr: plainLabels} : {tickCount: 5, labelExpr: plainLabels},
  };
}

/** The text of a tooltip: lines of a name and a value. Vega-Lite puts titles of tooltips and arrays to sort by into
    expressions, where a name with U+2028 is a syntax error; so a tooltip travels as one field, and order is given by
    domains alone. */
const tip = (...lines) => JSON.stringify(lines);
const tooltip = {field: 'tip', type: 'nominal'};

/** A strategy for each row of the y axis. */
const byRow = {field: 'label', type: 'ordinal', sort: null, title: null, axis: {labelColor: ink, ticks: false, domain: false}};

/** In pixels: Vega-Lite warns of a step where the width is to fit. */
const rowsHeight = (rows, step) => step * new Set(rows.map(row => row.label)).size;

/** Colour, shape and dash for lines; a click on the legend dims all others. */
function byStrategy(names, data, width) {
  const looks = [...new Set(names)].map(name => look(name, data));
  const domain = looks.map(l => l.label);
  const legend = {columns: Math.max(1, Math.floor(width / 185)), symbolOpacity: 1};
  const channel = range => ({field: 'label', type: 'nominal', sort: null, scale: {domain, range}, legend});
  return {
    color: channel(looks.map(l => l.hue)), shape: channel(looks.map(l => l.shape)), strokeDash: channel(looks.map(l => l.dash)),
    opacity: {condition: {param: 'picked', value: 1}, value: 0.12},
  };
}
const picked = [{name: 'picked', select: {type: 'point', fields: ['label']}, bind: 'legend'}];
