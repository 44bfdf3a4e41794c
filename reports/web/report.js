// Draws each figure of the page from the JSON beside its place. Colours are CSS variables, so the theme follows by itself.
'use strict';
(() => {
  const strategies = JSON.parse(document.getElementById('strategies').textContent);
  const ink = 'var(--ink)', soft = 'var(--soft)', line = 'var(--line)';
  const hues = Array.from({length: 12}, (_, i) => `var(--s${i})`);
  const shapes = ['circle', 'square', 'triangle-up', 'diamond', 'cross', 'triangle-down', 'triangle-right', 'triangle-left'];
  const verdictHues = {faster: 'var(--good)', slower: 'var(--bad)', same: ink, inconclusive: 'var(--warn)', baseline: soft, failed: 'var(--bad)'};
  // What a strategy does not decide, or merely holds, stays in the background.
  const quiet = new Set(['compute', 'reserved']);
  const font = 'system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

  const config = {
    background: 'transparent', font, view: {stroke: null},
    axis: {labelColor: soft, titleColor: soft, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 'normal', gridColor: line,
           domainColor: soft, tickColor: soft, titlePadding: 8, labelFont: font, titleFont: font, labelLimit: 170, labelFlush: false},
    legend: {labelColor: ink, titleColor: soft, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 'normal', labelFont: font,
             titleFont: font, symbolSize: 60, orient: 'bottom', title: null, labelLimit: 240, columnPadding: 16, offset: 12},
  };

  /** The strategy's look, the same in every chart of the page; the baseline is drawn in ink. */
  function look(name, data) {
    const peers = strategies.filter(s => s.kind === data.of);
    const own = peers.find(s => s.name === name) || {control: false};
    const i = Math.max(0, peers.indexOf(own));
    return {hue: name === data.baseline ? ink : hues[i % hues.length], shape: shapes[i % shapes.length],
            label: own.control ? `${name} (control)` : name, dash: own.control ? [5, 3] : [1, 0]};
  }

  const number = value => value === null ? '–' : Number(value.toPrecision(3)).toString();
  const ratio = row => row.low === null ? number(row.ratio) : `${number(row.ratio)} (${number(row.low)} to ${number(row.high)})`;
  const fact = (field, title) => ({field, title, type: 'nominal'});
  const names = rows => [...new Set(rows.map(row => row.s))];

  /** 1, 2 and 5 in every decade, thinned to what fits. */
  function ticks(low, high) {
    const all = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
      for (const m of [1, 2, 5]) all.push(Number(`${m}e${e}`));
    const inside = all.filter(t => t >= low * 0.999 && t <= high * 1.001);
    return inside.length > 8 ? inside.filter(t => /^1/.test(t.toExponential())) : inside;
  }
  const span = values => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
  const plainLabels = "format(datum.value, datum.value >= 1e6 ? '.2~s' : datum.value >= 1 ? ',~f' : '~g')";

  function byStrategy(rows, data, width) {
    const looks = names(rows).map(name => look(name, data));
    const domain = looks.map(l => l.label);
    const legend = {columns: Math.max(1, Math.floor(width / 185)), symbolOpacity: 1};
    return {
      color: {field: 'label', type: 'nominal', sort: null, scale: {domain, range: looks.map(l => l.hue)}, legend},
      shape: {field: 'label', type: 'nominal', sort: null, scale: {domain, range: looks.map(l => l.shape)}, legend},
      strokeDash: {field: 'label', type: 'nominal', sort: null, scale: {domain, range: looks.map(l => l.dash)}, legend: null},
      opacity: {condition: {param: 'picked', value: 1}, value: 0.12},
    };
  }
  const picked = [{name: 'picked', select: {type: 'point', fields: ['label']}, bind: 'legend'}];
  const labelled = (rows, data) => rows.map(row => ({...row, label: look(row.s, data).label}));

  function cost(data, width) {
    const rows = labelled(data.rows.filter(row => row.y > 0), data)
        .map(row => ({...row, time: `${number(row.y)} ${data.unit}`, versus: ratio(row)}));
    const numeric = rows.every(row => row.x !== null && row.x >= 0);
    const positive = rows.filter(row => row.x > 0).map(row => row.x);
    const [first, last] = span(positive);
    const log = numeric && positive.length > 0 && last / first >= 8;
    // A logarithmic axis has no 0: it stands half an octave of the first value to its left, labelled 0.
    const zero = first / 2;
    const places = [...new Set(rows.map(row => row.x))].sort((a, b) => a - b);
    if (log) for (const row of rows) row.at = row.x > 0 ? row.x : zero;
    const [low, high] = span(rows.map(row => row.y));
    const steep = high / low >= 2;
    return {
      data: {values: rows}, height: width < 600 ? 280 : 340, params: picked,
      mark: {type: 'line', strokeWidth: 1.75, clip: false, point: {filled: true, size: 42}},
      encoding: {
        x: log ? {field: 'at', type: 'quantitative', title: data.axis, scale: {type: 'log', base: 2, nice: false},
                  axis: {grid: false, values: places.map(x => x > 0 ? x : zero), labelOverlap: 'greedy',
                         labelExpr: `datum.value < ${first} ? '0' : format(datum.value, '~r')`}}
             : numeric ? {field: 'x', type: 'quantitative', title: data.axis, axis: {grid: false, values: places, labelOverlap: 'greedy', labelExpr: plainLabels}}
                       : {field: 'place', type: 'ordinal', sort: data.places, title: data.axis, axis: {labelAngle: 0}},
        y: {field: 'y', type: 'quantitative', title: `median, ${data.unit}${steep ? ' (log scale)' : ''}`,
            scale: steep ? {type: 'log', nice: false, domain: [low * 0.85, high * 1.15]} : {zero: true},
            axis: steep ? {values: ticks(low * 0.85, high * 1.15), labelExpr: plainLabels} : {tickCount: 5}},
        ...byStrategy(rows, data, width),
        tooltip: [fact('label', 'strategy'), fact('place', data.axis), fact('time', 'median'), fact('versus', `ratio to ${data.baseline}`),
                  fact('verdict', 'verdict')],
      },
    };
  }

  function intervals(data, width) {
    const rows = labelled(data.rows, data).map(row => ({...row, time: `${number(row.y)} ${data.unit}`, versus: ratio(row),
                                                                 low: row.low ?? row.ratio, high: row.high ?? row.ratio}));
    const [least, most] = span(rows.flatMap(row => [row.low, row.high, 1 - data.margin, 1 + data.margin]));
    const pad = Math.pow(most / least, 0.06), low = least / pad, high = most * pad;
    const near = high / low < 1.3 ? [1 - data.margin, 1, 1 + data.margin] : high / low < 3 ? [0.6, 0.8, 1, 1.25, 1.5] : ticks(low, high);
    const verdicts = [...new Set(rows.map(row => row.verdict))];
    const x = {type: 'quantitative', title: 'ratio, log scale: left of 1 is faster',
               scale: {type: 'log', nice: false, domain: [low, high]}, axis: {values: near, labelExpr: plainLabels}};
    const y = {field: 'label', type: 'ordinal', sort: null, title: null, axis: {labelColor: ink, ticks: false, domain: false}};
    const color = {field: 'verdict', type: 'nominal', scale: {domain: verdicts, range: verdicts.map(v => verdictHues[v])}, legend: {columns: 3}};
    const tooltip = [fact('label', 'strategy'), fact('time', 'median'), fact('versus', `ratio to ${data.baseline}`), fact('verdict', 'verdict')];
    return {
      data: {values: rows}, height: {step: 26},
      layer: [
        {data: {values: [{from: 1 - data.margin, to: 1 + data.margin}]}, mark: {type: 'rect', color: line, opacity: 0.9},
         encoding: {x: {...x, field: 'from'}, x2: {field: 'to'}}},
        {data: {values: [{at: 1}]}, mark: {type: 'rule', color: soft}, encoding: {x: {...x, field: 'at'}}},
        {mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {...x, field: 'low'}, x2: {field: 'high'}, y, color, tooltip}},
        {mark: {type: 'point', filled: true, size: 70, opacity: 1}, encoding: {x: {...x, field: 'ratio'}, y, color, tooltip}},
      ],
    };
  }

  function bars(rows, group, groups, width, x, tooltip, beside) {
    const y = {field: 'label', type: 'ordinal', sort: null, title: null, axis: {labelColor: ink, ticks: false, domain: false}};
    const legend = {columns: Math.max(1, Math.floor(width / 130)), symbolType: 'square'};
    return {
      data: {values: rows}, height: {step: beside ? 12 * groups.length + 10 : 26, for: 'position'},
      mark: {type: 'bar', height: beside ? {band: 0.92} : {band: 0.7}},
      encoding: {
        y: beside ? {...y, scale: {paddingInner: 0.3}} : y, x,
        ...(beside ? {yOffset: {field: group, sort: groups}} : {order: {field: 'order', type: 'quantitative'}}),
        color: {field: group, type: 'nominal', sort: groups, scale: {domain: groups, range: groups.map((g, i) => quiet.has(g) ? 'var(--mute)' : hues[i % hues.length])}, legend},
        tooltip,
      },
    };
  }

  function parts(data, width) {
    const rows = labelled(data.rows, data)
        .map(row => ({...row, order: data.groups.indexOf(row.group), time: `${number(row.y)} ${data.unit}`, part: `${row.share.toFixed(1)} %`}));
    return bars(rows, 'group', data.groups, width, {field: 'y', type: 'quantitative', title: data.unit, stack: 'zero', axis: {tickCount: 6, labelExpr: plainLabels}},
                [fact('label', 'strategy'), fact('group', 'part'), fact('time', 'median'), fact('part', 'share')], false);
  }

  function bytes(data, width) {
    const rows = labelled(data.rows, data).map(row => ({...row, text: `${number(row.y)} ${data.unit}`}));
    const [low, high] = span(rows.filter(row => row.y > 0).map(row => row.y));
    const log = high / low > 50;
    const floor = Math.pow(10, Math.floor(Math.log10(low)) - (Math.log10(low) % 1 === 0 ? 1 : 0));
    // A bar on a logarithmic axis starts at the decade below the smallest; a length of 0 is no bar.
    const shown = log ? rows.filter(row => row.y > 0).map(row => ({...row, floor})) : rows;
    const x = {field: 'y', type: 'quantitative', title: data.unit + (log ? ' (log scale)' : ''),
               scale: log ? {type: 'log', nice: false, domain: [floor, high * 1.2]} : {}, stack: null,
               axis: log ? {values: ticks(floor, high * 1.2), labelExpr: plainLabels} : {tickCount: 6, labelExpr: plainLabels}};
    const spec = bars(shown, 'group', data.groups, width, x, [fact('label', 'strategy'), fact('group', 'counter'), fact('text', 'value')], true);
    if (log) spec.encoding.x2 = {field: 'floor'};
    return spec;
  }

  function growth(data, width) {
    const title = data.unit ? `${data.label} (${data.unit})` : data.label;
    const rows = labelled(data.lines.flatMap(l => l.points.map(([x, y]) => ({s: l.s, x, y}))), data);
    return {
      data: {values: rows}, height: width < 600 ? 240 : 280, params: picked,
      mark: {type: 'line', strokeWidth: 1.75, point: rows.length < 400 ? {filled: true, size: 30} : false},
      encoding: {
        x: {field: 'x', type: 'quantitative', title: 'eval', axis: {grid: false, tickCount: width < 600 ? 5 : 10}, scale: {nice: false}},
        y: {field: 'y', type: 'quantitative', title, axis: {tickCount: 5, labelExpr: plainLabels}},
        ...byStrategy(rows, data, width),
        tooltip: [fact('label', 'strategy'), fact('x', 'eval'), {...fact('y', title), type: 'quantitative', format: ',.6~r'}],
      },
    };
  }

  const kinds = {cost, intervals, parts, bytes, growth};

  async function draw(figure) {
    const holder = figure.querySelector('.plot');
    try {
      const data = JSON.parse(figure.querySelector('script').textContent);
      const width = holder.clientWidth;
      const spec = {$schema: 'https://vega.github.io/schema/vega-lite/v6.json', description: figure.querySelector('figcaption').textContent,
                    width, autosize: {type: 'fit-x', contains: 'padding'}, padding: {left: 0, right: 12, top: 6, bottom: 4}, config,
                    ...kinds[data.kind](data, width)};
      // The interpreter instead of compiled expressions: the page's security policy forbids eval.
      await vegaEmbed(holder, spec, {ast: true, actions: false, renderer: 'svg', defaultStyle: false, tooltip: {disableDefaultStyle: true}});
    } catch (error) {
      holder.classList.add('broken');
      holder.textContent = `This chart could not be drawn (${error}); the table holds its figures.`;
      console.error(error);
    }
  }

  const drawn = new WeakMap();
  const resized = new ResizeObserver(entries => {
    for (const {target, contentRect} of entries) {
      if (Math.abs((drawn.get(target) ?? -1) - contentRect.width) < 2 || contentRect.width === 0) continue;
      drawn.set(target, contentRect.width);
      draw(target.parentElement);
    }
  });
  for (const holder of document.querySelectorAll('figure .plot')) resized.observe(holder);
})();
