// The offset x time map of an activation plan on a canvas of its own: Vega would make an object of each of 100000
// rectangles. Drag a box or turn the wheel (once the map has the focus, or with Ctrl) to zoom; + - 0 and the arrow keys
// or the buttons do the same, and then what lies at the cross is told.
const lifeHues = 5;

function sized(bytes) {
  for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']])
    if (Math.abs(bytes) >= unit) return `${number(bytes / unit)} ${name}`;
  return `${Math.round(bytes)} B`;
}

/** Binary steps of an axis of bytes, 1-2-5 ones of any other: about `n` of them. */
function steps(from, to, n, base) {
  const raw = Math.max((to - from) / n, 1);
  const power = base ** Math.floor(Math.log(raw) / Math.log(base));
  const step = base === 2 ? power * (raw > power ? 2 : 1) : [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

function makeMap(holder, caption, data) {
  const count = data.first.length;
  const [first, last, offset, size] = [data.first, data.last, data.offset, data.size].map(values => Float64Array.from(values));
  const whole = {x0: 0, x1: data.steps, y0: 0, y1: Math.max(data.bytes, data.bound) * 1.04 || 1};
  let view = {...whole}, drag = null, cross = false, width = 0;
  const height = 380, margin = {left: 66, right: 10, top: 8, bottom: 36};
  const longest = last.reduce((most, end, i) => Math.max(most, end - first[i] + 1), 1);
  const hueOf = Uint8Array.from(first, (from, i) => Math.min(lifeHues - 1, Math.floor(lifeHues * Math.log(last[i] - from + 1) / Math.log(longest + 1))));

  const live = new Float64Array(data.steps + 1);  // changes at first, then their sum
  for (let i = 0; i < count; ++i) {
    if (first[i] >= data.steps) continue;
    live[first[i]] += size[i];
    live[Math.min(last[i], data.steps - 1) + 1] -= size[i];
  }
  for (let step = 1; step < data.steps; ++step) live[step] += live[step - 1];

  const element = (name, properties) => Object.assign(document.createElement(name), properties);
  const tools = element('div', {className: 'tools'});
  const canvas = element('canvas', {tabIndex: 0});
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `Chart: ${caption}. ${count} rectangles over ${data.steps} steps and ${sized(data.bytes)}. Zoom with plus, minus and 0, move with the arrow keys.`);
  const told = element('output', {className: 'soft'});
  const button = (text, label, act) => {
    const b = element('button', {type: 'button', textContent: text, onclick: act});
    b.setAttribute('aria-label', label);
    tools.append(b);
  };
  button('+', 'Zoom in', () => zoom(0.5));
  button('−', 'Zoom out', () => zoom(2));
  button('Whole', 'Show the whole plan', () => { view = {...whole}; soon(); });
  const key = element('span', {className: 'key'});
  key.innerHTML = 'lives <i>1 step</i>' + Array.from({length: lifeHues}, (_, i) => `<b style="background:var(--m${i})"></b>`).join('') +
      `<i>${longest} steps</i> <b class="stroke"></b> live bytes <b class="stroke bound"></b> lower bound`;
  tools.append(key);
  const frame = element('div', {className: 'frame', hidden: true});  // what is dragged, over the map
  const stage = element('div', {className: 'stage'});
  stage.append(canvas, frame);
  holder.replaceChildren(tools, stage, told);

  const inner = () => ({w: width - margin.left - margin.right, h: height - margin.top - margin.bottom});
  const toX = step => margin.left + (step - view.x0) / (view.x1 - view.x0) * inner().w;
  const toY = byte => margin.top + (view.y1 - byte) / (view.y1 - view.y0) * inner().h;
  const stepAt = x => view.x0 + (x - margin.left) / inner().w * (view.x1 - view.x0);
  const byteAt = y => view.y1 - (y - margin.top) / inner().h * (view.y1 - view.y0);

  function hit(step, byte) {
    for (let i = count - 1; i >= 0; --i)
      if (first[i] <= step && step < last[i] + 1 && offset[i] <= byte && byte < offset[i] + size[i]) return i;
    return -1;
  }
  const lines = i => [['tensor', data.names[data.name[i]]], ['steps', `${first[i]} to ${last[i]}`], ['offset', sized(offset[i])], ['size', sized(size[i])]];

  function bounded(v) {
    const w = Math.min(v.x1 - v.x0, whole.x1), h = Math.min(v.y1 - v.y0, whole.y1);
    const x0 = Math.max(0, Math.min(v.x0, whole.x1 - w)), y0 = Math.max(0, Math.min(v.y0, whole.y1 - h));
    return {x0, x1: x0 + w, y0, y1: y0 + h};
  }
  function zoom(factor, atX = (view.x0 + view.x1) / 2, atY = (view.y0 + view.y1) / 2) {
    if (factor < 1 && view.x1 - view.x0 < 2 && view.y1 - view.y0 < 64) return;
    view = bounded({x0: atX + (view.x0 - atX) * factor, x1: atX + (view.x1 - atX) * factor, y0: atY + (view.y0 - atY) * factor, y1: atY + (view.y1 - atY) * factor});
    soon();
  }
  function move(dx, dy) {
    const w = (view.x1 - view.x0) * dx, h = (view.y1 - view.y0) * dy;
    view = bounded({x0: view.x0 + w, x1: view.x1 + w, y0: view.y0 + h, y1: view.y1 + h});
    soon();
  }

  let waiting = false;
  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function draw() {
    width = holder.clientWidth;
    if (width === 0) return;
    const density = window.devicePixelRatio || 1;
    canvas.width = width * density;
    canvas.height = height * density;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const g = canvas.getContext('2d');
    g.setTransform(density, 0, 0, density, 0, 0);
    g.clearRect(0, 0, width, height);
    g.save();
    g.beginPath();
    g.rect(margin.left, margin.top, inner().w, inner().h);
    g.clip();
    const sx = inner().w / (view.x1 - view.x0), sy = inner().h / (view.y1 - view.y0);
    for (let hue = 0; hue < lifeHues; ++hue) {
      g.fillStyle = colour(`--m${hue}`);
      for (let i = 0; i < count; ++i) {
        if (hueOf[i] !== hue || last[i] + 1 <= view.x0 || first[i] >= view.x1 || offset[i] + size[i] <= view.y0 || offset[i] >= view.y1) continue;
        const w = (last[i] + 1 - first[i]) * sx, h = size[i] * sy;
        // A hair of space between neighbours, once they are large enough to have one.
        g.fillRect(toX(first[i]), toY(offset[i] + size[i]), Math.max(w > 4 ? w - 0.75 : w, 0.5), Math.max(h > 4 ? h - 0.75 : h, 0.5));
      }
    }
    g.lineWidth = sx < 2 ? 1 : 1.75;
    g.strokeStyle = colour('--ink');
    g.beginPath();
    for (let step = Math.max(0, Math.floor(view.x0)); step < Math.min(data.steps, view.x1 + 1); ++step) {
      g.lineTo(toX(step), toY(live[step]));
      g.lineTo(toX(step + 1), toY(live[step]));
    }
    g.stroke();
    g.setLineDash([6, 4]);
    g.strokeStyle = colour('--bad');
    g.beginPath();
    g.moveTo(margin.left, toY(data.bound));
    g.lineTo(width - margin.right, toY(data.bound));
    g.stroke();
    g.setLineDash([]);
    if (cross) {
      g.strokeStyle = colour('--link');
      g.lineWidth = 1;
      const x = margin.left + inner().w / 2, y = margin.top + inner().h / 2;
      g.beginPath();
      g.moveTo(x - 9, y); g.lineTo(x + 9, y); g.moveTo(x, y - 9); g.lineTo(x, y + 9);
      g.stroke();
    }
    g.restore();
    g.font = `11px ${font}`;
    g.fillStyle = g.strokeStyle = colour('--soft');
    g.lineWidth = 1;
    g.strokeRect(margin.left - 0.5, margin.top + 0.5, inner().w + 1, inner().h);
    g.textAlign = 'center';
    g.textBaseline = 'top';
    for (const at of steps(view.x0, view.x1, width < 600 ? 4 : 10, 10)) g.fillText(at.toLocaleString('en'), toX(at), height - margin.bottom + 5);
    g.fillText('step', margin.left + inner().w / 2, height - 14);
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (const at of steps(view.y0, view.y1, 7, 2)) g.fillText(sized(at), margin.left - 6, Math.max(toY(at), margin.top + 5));
    const under = cross ? hit((view.x0 + view.x1) / 2, (view.y0 + view.y1) / 2) : -1;
    told.textContent = !cross ? '' : under < 0 ? 'Nothing lies at the cross.' : lines(under).map(([name, value]) => `${name} ${value}`).join(', ');
  }

  const place = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('pointerdown', event => {
    const [x, y] = place(event);
    drag = event.pointerType === 'touch' ? null : {x, y, toX: x, toY: y, moved: false};
    if (drag) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    const [x, y] = place(event);
    if (drag) {
      Object.assign(drag, {toX: x, toY: y, moved: drag.moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) > 6});
      hideTip();
      frame.hidden = !drag.moved;
      Object.assign(frame.style, {left: `${Math.min(x, drag.x)}px`, top: `${Math.min(y, drag.y)}px`, width: `${Math.abs(x - drag.x)}px`, height: `${Math.abs(y - drag.y)}px`});
      return;
    }
    const i = hit(stepAt(x), byteAt(y));
    if (i < 0) hideTip();
    else showTip(lines(i), event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerup', () => {
    if (drag?.moved) {
      const [left, right] = [drag.x, drag.toX].sort((a, b) => a - b), [top, bottom] = [drag.y, drag.toY].sort((a, b) => a - b);
      if (right - left > 6 && bottom - top > 6) view = bounded({x0: stepAt(left), x1: stepAt(right), y0: byteAt(bottom), y1: byteAt(top)});
    }
    drag = null;
    frame.hidden = true;
    soon();
  });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', () => { view = {...whole}; soon(); });
  canvas.addEventListener('wheel', event => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const [x, y] = place(event);
    zoom(event.deltaY < 0 ? 0.8 : 1.25, stepAt(x), byteAt(y));
  }, {passive: false});
  const keys = {
    '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => { view = {...whole}; soon(); },
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, 0.1), ArrowDown: () => move(0, -0.1),
  };
  canvas.addEventListener('keydown', event => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    cross = true;
    keys[event.key]();
  });
  canvas.addEventListener('blur', () => { cross = false; soon(); });
  return draw;
}
