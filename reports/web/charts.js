// Vega-Lite specs of the charts of time, one function a kind of chart: spec(data, width, chosen), where `chosen` holds
// what the reader selected above the chart (see `choices`).

function verdicts(data, width) {
  const rows = labelled(data.rows, data).map(row => {
    const mark = {faster: ' ▼', slower: ' ▲', same: ' ='}[row.verdict] ?? '';
    const text = row.ratio === null ? (row.verdict === 'untimed' ? '–' : row.verdict) : row.mixed ? 'mixed' : number(row.ratio);
    return {...row, text: row.ratio === null || row.mixed || width < 600 ? text : text + mark,
            weight: row.ratio === null || row.mixed ? (row.verdict === 'leaks' ? 0.5 : row.mixed ? 0.15 : 0) : Math.min(0.6, 0.08 + Math.abs(Math.log2(row.ratio)) / 6),
            tip: tip(['strategy', row.label], ['workload', row.w], ['ratio to the baseline', row.mixed ? range(row.least, row.most) : number(row.ratio)], ['settings', row.tally])};
  });
  const domain = Object.keys(verdictHues);
  const columns = data.columns.filter(column => rows.some(row => row.column === column));
  const x = {field: 'column', type: 'ordinal', sort: null, scale: {domain: columns}, title: null, axis: {orient: 'top', labelAngle: -30, ticks: false, domain: false, labelColor: ink, labelPadding: 4}};
  return {
    width: Math.max(Math.min(width, 190 + 120 * columns.length), 170 + 46 * columns.length), padding: {left: 0, right: 44, top: 6, bottom: 4}, data: {values: rows}, height: rowsHeight(rows, 24), encoding: {x, y: byRow, tooltip},
    layer: [
      {mark: {type: 'rect', stroke: 'var(--page)', strokeWidth: 2},
       encoding: {color: {field: 'verdict', type: 'nominal', scale: {domain, range: domain.map(v => verdictHues[v])}, legend: null},
                  opacity: {field: 'weight', type: 'quantitative', scale: null}}},
      {mark: {type: 'text', fontSize: width < 600 ? 9 : 11, color: ink}, encoding: {text: {field: 'text', type: 'nominal'}}},
    ],
  };
}

function cost(data, width) {
  const rows = labelled(data.rows.filter(row => row.y > 0), data).map(row => ({
    ...row, tip: tip(['strategy', row.label], [data.axis, row.place], ['median', `${number(row.y)} ${data.unit}`],
                     [`ratio to ${data.baseline}`, ratio(row)], ['verdict', row.verdict])}));
  const numeric = rows.every(row => row.x !== null && row.x >= 0);
  if (!numeric) return costOfWords(data, rows);
  const positive = rows.filter(row => row.x > 0).map(row => row.x);
  const [first, last] = span(positive);
  const log = positive.length > 0 && last / first >= 8;
  // A logarithmic axis has no 0: it stands half an octave of the first value to its left, labelled 0.
  const zero = first / 2;
  const places = [...new Set(rows.map(row => row.x))].sort((a, b) => a - b);
  if (log) for (const row of rows) row.at = row.x > 0 ? row.x : zero;
  return {
    data: {values: rows}, height: width < 600 ? 280 : 340, params: picked,
    mark: {type: 'line', strokeWidth: 1.75, clip: false, point: {filled: true, size: 42}},
    encoding: {
      x: log ? {field: 'at', type: 'quantitative', title: data.axis, scale: {type: 'log', base: 2, nice: false},
                axis: {grid: false, values: places.map(x => x > 0 ? x : zero), labelOverlap: 'greedy',
                       labelExpr: `datum.value < ${first} ? '0' : format(datum.value, '~r')`}}
             : {field: 'x', type: 'quantitative', title: data.axis, axis: {grid: false, values: places, labelOverlap: 'greedy', labelExpr: plainLabels}},
      y: {field: 'y', ...positiveAxis(rows.map(row => row.y), `median, ${data.unit}`)},
      ...byStrategy(rows.map(row => row.s), data, width), tooltip,
    },
  };
}

/** Words have no distance, so no line joins them: a row a strategy, a colour a word. */
function costOfWords(data, rows) {
  const x = {field: 'y', ...positiveAxis(rows.map(row => row.y), `median, ${data.unit}`)};
  return {
    data: {values: rows}, height: rowsHeight(rows, 26), encoding: {x, y: byRow},
    layer: [
      {mark: {type: 'line', color: line, strokeWidth: 3}, encoding: {detail: {field: 'label', type: 'nominal'}}},
      {mark: {type: 'point', filled: true, size: 70, opacity: 1},
       encoding: {tooltip, color: {field: 'place', type: 'nominal', sort: null, scale: {domain: data.places, range: data.places.map((_, i) => hues[i % hues.length])},
                                   legend: {title: data.axis, titleOrient: 'left'}}}},
    ],
  };
}

function intervals(data) {
  const rows = labelled(data.rows, data).map(row => ({
    ...row, low: row.low ?? row.ratio, high: row.high ?? row.ratio,
    tip: tip(['strategy', row.label], ['median', `${number(row.y)} ${data.unit}`], [`ratio to ${data.baseline}`, ratio(row)], ['verdict', row.verdict])}));
  const {x, band} = ratioAxis(rows.flatMap(row => [row.low, row.high]), data.margin);
  const verdicts = [...new Set(rows.map(row => row.verdict))];
  const color = {field: 'verdict', type: 'nominal', scale: {domain: verdicts, range: verdicts.map(v => verdictHues[v])}, legend: {columns: 3}};
  return {
    data: {values: rows}, height: rowsHeight(rows, 26),
    layer: [
      ...band,
      {mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {...x, field: 'low'}, x2: {field: 'high'}, y: byRow, color, tooltip}},
      {mark: {type: 'point', filled: true, size: 70, opacity: 1}, encoding: {x: {...x, field: 'ratio'}, y: byRow, color, tooltip}},
    ],
  };
}

/** Each ratio against a shade over what its bar allows and a tick at its stretch. */
function limits(data, width) {
  const hue = {missed: 'var(--bad)', undecided: 'var(--warn)', reached: 'var(--good)', 'stretch reached': 'var(--s0)'};
  const values = data.rows.flatMap(row => [row.ratio, row.low ?? row.ratio, row.high ?? row.ratio, row.bar, row.stretch ?? row.bar]);
  const [least, most] = span(values), low = least / 1.3, high = most * 1.3;
  const rows = data.rows.map(row => ({
    ...row, low: row.low ?? row.ratio, high: row.high ?? row.ratio, from: row.least ? row.bar : low, to: row.least ? high : row.bar,
    tip: tip(['figure', row.label], ['of', row.where], ['ratio', ratio(row)], ['bar', `${row.least ? '≥' : '≤'} ${number(row.bar)}`],
             ['stretch', number(row.stretch)], ['verdict', row.verdict])}));
  const x = {type: 'quantitative', title: 'ratio (log scale)',
             scale: {type: 'log', nice: false, domain: [low, high]}, axis: {values: ticks(low, high), labelExpr: plainLabels, labelOverlap: 'greedy'}};
  const y = {...byRow, axis: {...byRow.axis, labelLimit: width < 600 ? 150 : 270}};
  const verdicts = Object.keys(hue).filter(v => rows.some(row => row.verdict === v));
  const color = {field: 'verdict', type: 'nominal', scale: {domain: verdicts, range: verdicts.map(v => hue[v])}, legend: {columns: width < 600 ? 2 : 4}};
  return {
    data: {values: rows}, height: rowsHeight(rows, 26),
    layer: [
      {mark: {type: 'bar', height: 16, color: line, opacity: 0.9}, encoding: {x: {...x, field: 'from'}, x2: {field: 'to'}, y, tooltip}},
      {mark: {type: 'tick', thickness: 2, size: 16, color: soft}, encoding: {x: {...x, field: 'stretch'}, y, tooltip}},
      {mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {...x, field: 'low'}, x2: {field: 'high'}, y, color, tooltip}},
      {mark: {type: 'point', filled: true, size: 70, opacity: 1}, encoding: {x: {...x, field: 'ratio'}, y, color, tooltip}},
    ],
  };
}

/** A logarithmic axis round 1 with the margin as a band. */
function ratioAxis(values, margin, title = 'ratio, log scale: left of 1 is faster') {
  const [least, most] = span([...values, 1 - margin, 1 + margin]);
  const pad = Math.pow(most / least, 0.06), low = least / pad, high = most * pad;
  const near = high / low < 1.3 ? [1 - margin, 1, 1 + margin] : high / low < 3 ? [0.6, 0.8, 1, 1.25, 1.5] : ticks(low, high);
  const x = {type: 'quantitative', title,
             scale: {type: 'log', nice: false, domain: [low, high]}, axis: {values: near, labelExpr: plainLabels}};
  const band = [
    {data: {values: [{from: 1 - margin, to: 1 + margin}]}, mark: {type: 'rect', color: line, opacity: 0.9},
     encoding: {x: {...x, field: 'from'}, x2: {field: 'to'}}},
    {data: {values: [{at: 1}]}, mark: {type: 'rule', color: soft}, encoding: {x: {...x, field: 'at'}}},
  ];
  return {x, band};
}

/** Every sample as a point over the box of its quartiles: nothing is drawn where nothing was measured. */
function distribution(data, width, chosen) {
  const {view} = chosen, asTime = view === 'zero' || view === 'near';
  const rows = labelled(data.rows.filter(row => row.place === chosen.place && (asTime || row.ratio.length > 0)), data);
  const boxes = rows.map(row => {
    const own = view === 'spread' ? row.ratio[2] : 1;
    const [least, lower, middle, upper, most] = asTime ? row.time : row.ratio.map(r => r / own);
    const unit = asTime ? ` ${data.unit}` : '';
    return {label: row.label, least, lower, middle, upper, most, own, hue: look(row.s, data).hue,
            tip: tip(['strategy', row.label], ['median', number(middle) + unit], ['middle half', range(lower, upper) + unit], ['all', range(least, most) + unit])};
  });
  const points = rows.flatMap((row, r) => row.points.map(([block, machine, time, ratio, uneven], i) => ({
    label: row.label, at: asTime ? time : ratio === null ? null : ratio / boxes[r].own, hue: boxes[r].hue, uneven, jitter: (i * 0.618034 % 1 - 0.5) * 0.5,
    tip: tip(['strategy', row.label], ...(machine > 0 ? [['machine', String(machine + 1)]] : []), ['block', String(block + 1)], ['time', `${number(time)} ${data.unit}`],
             [`ratio to ${data.baseline}`, number(ratio)], ...(uneven ? [['left out', 'the machine changed its speed']] : []))}))).filter(point => point.at !== null);
  const {x, band} = asTime
      ? {band: [], x: {type: 'quantitative', title: data.unit, scale: view === 'zero' ? {zero: true} : {zero: false, nice: false, padding: 10}, axis: {tickCount: 6, labelExpr: plainLabels}}}
      : ratioAxis(points.map(point => point.at), data.margin, view === 'spread' ? 'ratio / its own median, log scale' : undefined);
  const color = {field: 'hue', type: 'nominal', scale: null, legend: null};
  return {
    data: {values: boxes}, height: rowsHeight(rows, 30),
    layer: [
      ...band,
      {mark: {type: 'rule', strokeWidth: 1.25}, encoding: {x: {...x, field: 'least'}, x2: {field: 'most'}, y: byRow, color, tooltip}},
      {mark: {type: 'bar', height: 16, opacity: 0.3}, encoding: {x: {...x, field: 'lower'}, x2: {field: 'upper'}, y: byRow, color, tooltip}},
      {mark: {type: 'tick', thickness: 2.5, size: 18}, encoding: {x: {...x, field: 'middle'}, y: byRow, color, tooltip}},
      {data: {values: points}, mark: {type: 'point', size: 20, strokeWidth: 1, opacity: 0.9},
       encoding: {x: {...x, field: 'at'}, y: byRow, yOffset: {field: 'jitter', type: 'quantitative', scale: {domain: [-0.8, 0.8]}}, color, tooltip,
                  fillOpacity: {condition: {test: 'datum.uneven === 1', value: 0}, value: 0.6}, fill: color}},
    ],
  };
}

function latency(data, width, chosen) {
  const tail = chosen.view === 'tail';
  const lines = data.rows.flatMap(row => {
    const last = row.points[row.points.length - 1];
    const points = tail ? row.points.filter(([, share]) => share < 1) : [[row.points[0][0], 0], ...row.points];
    return points.map(([ns, share]) => ({
      s: row.s, ns, share, beyond: 1 - share,
      tip: tip(['strategy', look(row.s, data).label], ['within', `${number(ns)} ns`], ['share', `${Number((100 * share).toPrecision(6))} %`],
               ['longest', `${number(last[0])} ns`], ['operations', row.count.toLocaleString('en')])}));
  });
  const rows = labelled(lines.filter(row => row.ns > 0), data);
  const floors = data.rows.map(row => row.floor).filter(ns => ns > 0).sort((a, b) => a - b);
  const floor = floors[Math.floor(floors.length / 2)];
  const [low, high] = span([...rows.map(row => row.ns), ...(floor ? [floor] : [])]);
  const x = {type: 'quantitative', title: 'ns (log scale)', scale: {type: 'log', nice: false, domain: [low * 0.9, high * 1.1]},
             axis: {values: ticks(low * 0.9, high * 1.1), labelExpr: plainLabels, grid: false}};
  const y = tail ? {field: 'beyond', type: 'quantitative', title: 'share that takes longer (log scale)', sort: 'descending', scale: {type: 'log', nice: false},
                    axis: {values: [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5], labelExpr: "format(datum.value, '~%')"}}
                 : {field: 'share', type: 'quantitative', title: 'share of the operations', scale: {domain: [0, 1]},
                    axis: {values: [0, 0.25, 0.5, 0.75, 0.9, 1], labelExpr: "format(datum.value, '~%')"}};
  const {shape, ...looks} = byStrategy(rows.map(row => row.s), data, width);
  const height = width < 600 ? 260 : 300;
  const marker = floor ? [
    {data: {values: [{ns: floor}]}, mark: {type: 'rule', color: soft, strokeDash: [4, 3]}, encoding: {x: {...x, field: 'ns'}}},
    {data: {values: [{ns: floor, text: `clock ${number(floor)} ns`}]}, mark: {type: 'text', color: soft, align: 'left', dx: 4, y: height - 8, fontSize: 11},
     encoding: {x: {...x, field: 'ns'}, text: {field: 'text', type: 'nominal'}}},
  ] : [];
  return {
    data: {values: rows}, height,
    layer: [
      ...marker,
      {params: picked, mark: {type: 'line', interpolate: tail ? 'linear' : 'step-after', strokeWidth: 1.75}, encoding: {x: {...x, field: 'ns'}, y, ...looks}},
      {mark: {type: 'point', size: 40, opacity: 0, filled: true}, encoding: {x: {...x, field: 'ns'}, y, tooltip}},
    ],
  };
}

function speedup(data, width) {
  const rows = labelled(data.rows, data).map(row => ({
    ...row, low: row.low ?? row.y, high: row.high ?? row.y,
    tip: tip(['strategy', row.label], ['threads', String(row.x)], ['speed-up', row.low === null ? number(row.y) : `${number(row.y)} (${range(row.low, row.high)})`])}));
  const places = [...new Set(rows.map(row => row.x))].sort((a, b) => a - b);
  const x = {field: 'x', type: 'quantitative', title: 'threads', scale: {nice: false, zero: false}, axis: {grid: false, values: places, format: 'd'}};
  const y = {field: 'y', type: 'quantitative', title: 'speed-up over one thread', axis: {tickCount: 5}, scale: {zero: true}};
  const looks = byStrategy(rows.map(row => row.s), data, width);
  const most = places[places.length - 1];
  return {
    data: {values: rows}, height: width < 600 ? 260 : 300,
    layer: [
      {data: {values: [{x: 1, y: 1}, {x: most, y: most}]}, mark: {type: 'line', color: soft, strokeDash: [4, 3]}, encoding: {x, y}},
      {data: {values: [{x: most, y: most, text: 'ideal'}]}, mark: {type: 'text', color: soft, align: 'right', dx: -6, dy: -6, fontSize: 11}, encoding: {x, y, text: {field: 'text', type: 'nominal'}}},
      {mark: {type: 'rule', strokeWidth: 1}, encoding: {x, y: {...y, field: 'low'}, y2: {field: 'high'}, color: looks.color}},
      {params: picked, mark: {type: 'line', strokeWidth: 1.75, point: {filled: true, size: 42}}, encoding: {x, y, ...looks, tooltip}},
    ],
  };
}

function growth(data, width) {
  const title = data.unit ? `${data.label} (${data.unit})` : data.label;
  const rows = labelled(data.lines.flatMap(l => l.points.map(([x, y]) => ({s: l.s, x, y}))), data)
      .map(row => ({...row, tip: tip(['strategy', row.label], ['eval', String(row.x)], [title, Number(row.y.toPrecision(6)).toLocaleString('en')])}));
  return {
    data: {values: rows}, height: width < 600 ? 240 : 280, params: picked,
    mark: {type: 'line', strokeWidth: 1.75, point: rows.length < 400 ? {filled: true, size: 30} : false},
    encoding: {
      x: {field: 'x', type: 'quantitative', title: 'eval', axis: {grid: false, tickCount: width < 600 ? 5 : 10}, scale: {nice: false}},
      y: {field: 'y', type: 'quantitative', title, axis: {tickCount: 5, labelExpr: plainLabels}},
      ...byStrategy(rows.map(row => row.s), data, width), tooltip,
    },
  };
}

function speed(data, width) {
  const rows = data.lines.flatMap(l => l.points.map(([turn, ns]) => ({
    machine: l.m, turn, ns, tip: tip(['machine', l.m], ['turn', String(turn)], ['loop', `${number(ns)} ns`])})));
  const machines = data.lines.map(l => l.m);
  return {
    data: {values: rows}, height: 130,
    mark: {type: 'point', filled: true, size: rows.length > 500 ? 10 : 24, opacity: 0.8},
    encoding: {
      x: {field: 'turn', type: 'quantitative', title: 'turn: the order of the measurements', axis: {grid: false, tickCount: width < 600 ? 4 : 10}, scale: {nice: false}},
      y: {field: 'ns', type: 'quantitative', title: 'ns of the loop', axis: {tickCount: 4}, scale: {zero: true}},
      color: {field: 'machine', type: 'nominal', sort: null, scale: {domain: machines, range: machines.map((_, i) => hues[i % hues.length])}, legend: machines.length > 1 ? {columns: 4} : null},
      tooltip,
    },
  };
}
