// Vega-Lite specs of the charts of memory and of the parts of an eval.

// What a strategy does not decide, or merely holds, stays in the background.
const quiet = new Set(['compute', 'reserved']);

function bars(rows, groups, width, x, beside) {
  const legend = {columns: Math.max(1, Math.floor(width / 130)), symbolType: 'square'};
  return {
    data: {values: rows}, height: rowsHeight(rows, beside ? 10 * groups.length + 8 : 24),
    mark: {type: 'bar', height: beside ? {band: 0.92} : {band: 0.7}},
    encoding: {
      y: beside ? {...byRow, scale: {paddingInner: 0.3}} : byRow, x,
      ...(beside ? {yOffset: {field: 'group', type: 'nominal', sort: null, scale: {domain: groups}}} : {order: {field: 'order', type: 'quantitative'}}),
      color: {field: 'group', type: 'nominal', sort: null, legend,
              scale: {domain: groups, range: groups.map((g, i) => quiet.has(g) ? 'var(--mute)' : hues[i % hues.length])}},
      tooltip,
    },
  };
}

function parts(data, width) {
  const rows = labelled(data.rows, data).map(row => ({
    ...row, order: data.groups.indexOf(row.group),
    tip: tip(['strategy', row.label], ['part', row.group], ['mean', `${number(row.y)} ${data.unit}`], ['share', `${row.share.toFixed(1)} %`])}));
  return bars(rows, data.groups, width, {field: 'y', type: 'quantitative', title: data.unit, stack: 'zero', axis: {tickCount: 6, labelExpr: plainLabels}}, false);
}

function bytes(data, width) {
  const rows = labelled(data.rows, data).map(row => ({...row, tip: tip(['strategy', row.label], [row.group, `${number(row.y)} ${data.unit}`])}));
  const [low, high] = span(rows.filter(row => row.y > 0).map(row => row.y));
  const log = high / low > 50;
  const floor = Math.pow(10, Math.floor(Math.log10(low)) - (Math.log10(low) % 1 === 0 ? 1 : 0));
  // A bar on a logarithmic axis starts at the decade below the smallest; a length of 0 is no bar.
  const shown = log ? rows.filter(row => row.y > 0).map(row => ({...row, floor})) : rows;
  const spec = bars(shown, data.groups, width, {
    field: 'y', type: 'quantitative', title: data.unit + (log ? ' (log scale)' : ''), stack: null,
    scale: log ? {type: 'log', nice: false, domain: [floor, high * 1.2]} : {},
    axis: log ? {values: ticks(floor, high * 1.2), labelExpr: plainLabels} : {tickCount: 6, labelExpr: plainLabels}}, true);
  if (log) spec.encoding.x2 = {field: 'floor'};
  return spec;
}

function fragmentation(data) {
  const rows = labelled(data.rows, data).map(row => ({
    ...row, hue: look(row.s, data).hue, tip: tip(['strategy', row.label], ['1 - peak / reserved', `${(100 * row.y).toFixed(1)} %`])}));
  const [low] = span(rows.map(row => row.y));
  return {
    data: {values: rows}, height: rowsHeight(rows, 24),
    encoding: {y: byRow, x: {field: 'y', type: 'quantitative', title: 'share of the reserved bytes that was never live', scale: {domain: [Math.min(0, low), 1]}, axis: {format: '~%', tickCount: 5}},
               color: {field: 'hue', type: 'nominal', scale: null, legend: null}, tooltip},
    // The tick shows a share of 0 too.
    layer: [{mark: {type: 'bar', height: {band: 0.6}, opacity: 0.75}}, {mark: {type: 'tick', thickness: 2, size: 16}}],
  };
}

/** Where each point of a scatter can bear its name without touching another name or point, if anywhere; above comes
    first, since the frontier leaves a point to the right and comes in from above. */
function placeNames(points, width, height) {
  const taken = points.map(({px, py}) => ({left: px - 6, right: px + 6, top: py - 6, bottom: py + 6}));
  const clear = box => box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height &&
      !taken.some(other => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);
  return points.flatMap(point => {
    const w = 6.3 * [...point.label].length;
    for (const [align, dx, dy] of [['left', 9, -11], ['center', 0, -13], ['right', -9, -11], ['right', -9, 0], ['left', 9, 0], ['right', -9, 11], ['center', 0, 13], ['left', 9, 11]]) {
      const left = point.px + dx - (align === 'right' ? w : align === 'center' ? w / 2 : 0), middle = point.py + dy;
      const box = {left, right: left + w, top: middle - 6, bottom: middle + 6};
      if (!clear(box)) continue;
      taken.push(box);
      return [{...point, align, dx, dy}];
    }
    return [];
  });
}

function pareto(data, width, chosen) {
  const height = width < 600 ? 280 : 320, room = width - 70;
  const rows = labelled(data.rows.filter(row => row.place === chosen.place), data).map(row => ({
    ...row, tip: tip(['strategy', row.label], ['median', `${number(row.x)} ${data.unit}`], [data.bytes, number(row.y)], ['on the frontier', row.frontier ? 'yes' : 'no'])}));
  if (rows.length === 0) return null;
  // Of a scatter only the distances tell, so its axes need no 0.
  const axis = (field, title) => {
    const [low, high] = span(rows.map(row => row[field]));
    const log = low > 0 && high / low >= 3, pad = log ? Math.pow(high / low, 0.08) : (high - low || high || 1) * 0.12;
    const [from, to] = log ? [low / pad, high * pad] : [low - pad, high + pad];
    return {field, at: v => log ? Math.log(v / from) / Math.log(to / from) : (v - from) / (to - from),
            encoding: {field, type: 'quantitative', title: log ? `${title} (log scale)` : title, scale: {nice: false, domain: [from, to], ...(log ? {type: 'log'} : {zero: false})},
                       axis: log ? {values: ticks(from, to), labelExpr: plainLabels} : {tickCount: 5, labelExpr: plainLabels}}};
  };
  const across = axis('x', `median, ${data.unit}`), up = axis('y', data.bytes);
  const x = across.encoding, y = up.encoding;
  const frontier = rows.filter(row => row.frontier).sort((a, b) => a.x - b.x || b.y - a.y);
  const looks = byStrategy(rows.map(row => row.s), data, width);
  // Frontier first; a name without room stands in the legend and the tooltip alone.
  const names = placeNames([...rows].sort((a, b) => Number(b.frontier) - Number(a.frontier))
                               .map(row => ({...row, px: across.at(row.x) * room, py: (1 - up.at(row.y)) * height})), room, height);
  return {
    data: {values: rows}, height,
    layer: [
      {data: {values: frontier}, mark: {type: 'line', interpolate: 'step-after', color: soft, strokeWidth: 1.5}, encoding: {x, y}},
      {params: picked, mark: {type: 'point', filled: true, size: 80},
       encoding: {x, y, color: looks.color, shape: looks.shape, opacity: looks.opacity, tooltip,
                  stroke: {condition: {test: 'datum.frontier', value: ink}, value: null}}},
      ...names.map(({label, align, dx, dy, ...row}) => ({
        data: {values: [{x: row.x, y: row.y, label}]}, mark: {type: 'text', align, dx, dy, baseline: 'middle', fontSize: 11, color: ink},
        encoding: {x, y, text: {field: 'label', type: 'nominal'}}})),
    ],
  };
}

function timeline(data, width) {
  const rows = labelled(data.lines.flatMap(l => l.points.map(([x, y]) => ({s: l.s, group: l.group, x, y}))), data).map(row => ({
    ...row, tip: tip(['strategy', row.label], ['step', String(row.x)], [row.group, `${number(row.y)} ${data.unit}`])}));
  const groups = [...new Set(data.lines.map(l => l.group))];
  const {color, opacity} = byStrategy(rows.map(row => row.s), data, width);
  return {
    data: {values: rows}, height: width < 600 ? 240 : 300, params: picked,
    mark: {type: 'line', strokeWidth: 1.75},
    encoding: {
      x: {field: 'x', type: 'quantitative', title: 'step of the round', axis: {grid: false, tickCount: width < 600 ? 5 : 10}, scale: {nice: false}},
      y: {field: 'y', type: 'quantitative', title: data.unit, axis: {tickCount: 5, labelExpr: plainLabels}},
      color, opacity, detail: {field: 'group', type: 'nominal'}, tooltip,
      strokeDash: {field: 'group', type: 'nominal', scale: {domain: groups, range: groups.map(g => g === 'reserved' ? [1, 0] : [3, 3])}, legend: {columns: 2, symbolType: 'stroke'}},
    },
  };
}
