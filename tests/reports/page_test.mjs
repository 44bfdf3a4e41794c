// page_test.mjs WRITE_SAMPLE FOLDER WEB: the HTML report in real Chromium. Reports are written into FOLDER by
// WRITE_SAMPLE; figures are computed here from run.json by other code than the report's own.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import test, {after, before} from 'node:test';
import {pathToFileURL} from 'node:url';

const [writeSample, folder, web] = process.argv.slice(2);
const {launch, open, drawAll, faultsOfFigures, faultsOfWidth} = await import(pathToFileURL(resolve(web, 'browser.mjs')).href);

/** The report of a run, the made one changed by `change`. */
function report(name, change) {
  const to = join(folder, name);
  mkdirSync(to, {recursive: true});
  const changed = structuredClone(run);
  change(changed);
  writeFileSync(join(to, 'changed.json'), JSON.stringify(changed));
  execFileSync(writeSample, [to, join(to, 'changed.json')], {stdio: 'inherit'});
  return join(to, 'report.html');
}

execFileSync(writeSample, [folder], {stdio: 'inherit'});
const run = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
const made = join(folder, 'report.html');
let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** Opens a report, closes it when done, and fails on anything said on the console. */
async function with_page(options, use, file = made) {
  const {page, faults} = await open(browser, file, options);
  page.setDefaultTimeout(60_000);  // a busy machine is slow, not wrong
  try {
    await use(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.context().close();
  }
}

const openAll = page => page.evaluate(() => { for (const d of document.querySelectorAll('main details')) d.open = true; });
const kinds = ['verdicts', 'cost', 'intervals', 'distribution', 'latency', 'speedup', 'parts', 'bytes', 'fragmentation', 'pareto', 'timeline', 'growth', 'map', 'speed'];

for (const {width, scheme} of [{width: 1280, scheme: 'light'}, {width: 390, scheme: 'dark'}]) {
  test(`every chart is drawn, named and beside its table at ${width} px, ${scheme}, and the page never scrolls sideways`, () => with_page({width, scheme}, async page => {
    await openAll(page);
    await drawAll(page);
    assert.deepEqual(await faultsOfFigures(page), []);
    assert.deepEqual(await faultsOfWidth(page), []);
    const seen = await page.evaluate(() => [...new Set([...document.querySelectorAll('figure')].map(figure => figure.dataset.kind))]);
    assert.deepEqual(kinds.filter(kind => !seen.includes(kind)), []);
    await page.screenshot({path: join(folder, `${width}-${scheme}.png`), fullPage: true});
  }));
}

test('a chart is drawn only once it is scrolled near, and every choice above it draws it anew', () => with_page({}, async page => {
  assert.equal(await page.evaluate(() => [...document.querySelectorAll('figure')].at(-1).querySelector('svg')), null);
  const selects = page.locator('figure[data-kind=distribution] select, figure[data-kind=latency] select, figure[data-kind=pareto] select');
  const seen = new Set();
  for (const select of await selects.all()) {
    const figure = select.locator('xpath=ancestor::figure');
    const what = `${await figure.getAttribute('data-kind')}: ${await select.locator('xpath=..').evaluate(label => label.firstChild.textContent)}`;
    if (seen.has(what)) continue;
    seen.add(what);
    await select.scrollIntoViewIfNeeded();
    const values = await select.locator('option').evaluateAll(options => options.map(option => option.value));
    const drawings = new Set();
    for (const value of values) {
      await select.selectOption(value);
      await figure.locator('xpath=self::*[@data-drawn]').waitFor();
      drawings.add(await figure.locator('svg').first().evaluate(svg => svg.innerHTML));
      assert.ok(await figure.locator('svg .role-mark path').count() > 0, `nothing drawn for ${what} ${value}`);
    }
    assert.equal(drawings.size, values.length, `different drawings for ${what} ${values}`);
  }
  assert.ok(seen.size >= 5, [...seen].join());
}));

test('a tooltip names what lies under the pointer', () => with_page({}, async page => {
  await drawAll(page);  // a neighbour that is drawn later moves the mark
  const figure = page.locator('figure[data-kind=cost]').first();
  await figure.scrollIntoViewIfNeeded();
  await figure.locator('svg .mark-symbol path').nth(2).hover({force: true});
  await page.locator('#tip.visible').waitFor();
  assert.match(await page.locator('#tip').textContent(), /^strategy.*live.*median.*ratio to heap/);
}));

// ---- figures ---------------------------------------------------------------------------------------------------------
const median = values => {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};
const blocksOf = cell => {
  const blocks = new Map();
  for (const s of cell.samples ?? []) {
    const key = `${s.machine ?? 0}/${s.block}`;
    blocks.set(key, [...(blocks.get(key) ?? []), s]);
  }
  return blocks;
};
/** Log ratios of the pairs of two cells; null where the machine changed its speed between two of a pair. */
function logRatios(cell, base) {
  const ours = blocksOf(cell), theirs = blocksOf(base), logs = [];
  for (const [block, samples] of ours) {
    if (!theirs.has(block)) continue;
    const [a, b] = [samples, theirs.get(block)].map(all => median(all.map(s => s.calibration ?? 0)));
    if (a > 0 && b > 0 && Math.max(a, b) > 1.1 * Math.min(a, b)) return null;
    logs.push(Math.log(median(samples.map(s => s.value)) / median(theirs.get(block).map(s => s.value))));
  }
  return logs.sort((a, b) => a - b);
}
/** From the sorted log ratios: the widest cut on both sides that still covers 95 %. */
function interval(logs) {
  const n = logs.length;
  let outside = 0, choose = 1, cut = -1;
  for (let k = 0; k < n; ++k) {
    outside += 2 * choose / 2 ** n;
    if (outside > 0.05 + 1e-12) break;
    cut = k;
    choose = choose * (n - k) / (k + 1);
  }
  return cut < 0 ? null : [Math.exp(logs[cut]), Math.exp(logs[n - 1 - cut])];
}
const verdictOf = ([low, high]) => high < 0.97 ? 'faster' : low > 1.03 ? 'slower' : low >= 0.97 && high <= 1.03 ? 'same' : 'inconclusive';
const visible = text => text.replace(/[\x00-\x1f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)));
const near = (shown, value) => Math.abs(Number(shown.replace(/[\u202f\s]/g, '')) - value) <= 0.0051 * Math.abs(value);

/** Every row of the table of all cells of each workload, as {heading: text}. */
const cellRows = page => page.evaluate(() => [...document.querySelectorAll('section[data-w]')].flatMap(section => {
  const table = [...section.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('Every cell of'));
  const heads = [...table.tHead.rows[0].cells].map(th => [...th.childNodes].filter(n => n.nodeName !== 'SMALL').map(n => n.textContent).join(''));
  return [...table.tBodies[0].rows].map(row => ({
    workload: section.dataset.w,
    ...Object.fromEntries([...row.cells].map((td, i) => [heads[i], (td.querySelector('code') ?? td).textContent])),
  }));
}));

test('the tables hold the medians, ratios, intervals and verdicts of run.json', () => with_page({scripts: false}, async page => {
  const rows = await cellRows(page);
  let compared = 0, timed = 0;
  for (const cell of run.cells) {
    const on = run.workloads.find(w => w.name === cell.workload);
    const row = rows.find(r => r.workload === cell.workload && r.strategy === visible(cell.strategy) &&
                               Object.entries(cell.parameters ?? {}).every(([name, value]) => r[visible(name)] === visible(value)));
    assert.ok(row, `no row for ${JSON.stringify([cell.workload, cell.strategy, cell.parameters])}`);
    if (!cell.samples?.length) continue;
    ++timed;
    assert.ok(near(row.median, median(cell.samples.map(s => s.value))), `median ${row.median} of ${row.strategy} in ${row.workload}`);
    const base = run.cells.find(c => c.workload === cell.workload && c.strategy === on.baseline &&
                                     JSON.stringify(c.parameters) === JSON.stringify(cell.parameters));
    const logs = cell.strategy === on.baseline ? null : logRatios(cell, base);
    if (!logs) continue;
    const bounds = interval(logs), shown = row.interval.split(' to ');
    assert.ok(near(row[`ratio to ${visible(on.baseline)}`], Math.exp(median(logs))), `ratio of ${row.strategy} in ${row.workload}`);
    assert.ok(near(shown[0], bounds[0]) && near(shown[1], bounds[1]), `interval ${row.interval}, not ${bounds}`);
    assert.equal(row.pairs, String(logs.length));
    assert.match(row.verdict, new RegExp(`${verdictOf(bounds)}$`));
    ++compared;
  }
  assert.ok(timed > 150 && compared > 100, `${timed} cells with a time, ${compared} compared`);
}));

test('the quantiles of single operations are those of run.json', () => with_page({}, async page => {
  const rows = await page.evaluate(() => [...document.querySelectorAll('table')].filter(t => t.caption.textContent.startsWith('Single operations'))
      .flatMap(t => [...t.tBodies[0].rows].map(row => [...row.cells].map(td => (td.querySelector('code') ?? td).textContent))));
  const cells = run.cells.filter(cell => cell.latency);
  assert.equal(rows.length, cells.length);
  for (const cell of cells) {
    const row = rows.find(r => r[0] === visible(cell.strategy));
    const within = share => cell.latency.ecdf.find(point => point.share >= share).ns;
    for (const [i, value] of [[1, cell.latency.floor], [2, within(0.5)], [3, within(0.9)], [4, within(0.99)], [5, within(0.999)], [6, within(1)], [7, cell.latency.count]])
      assert.ok(near(row[i], value), `${row}: ${row[i]} is not ${value}`);
  }
}));

test('the charts draw the samples of run.json', () => with_page({}, async page => {
  const charts = await page.evaluate(() => [...document.querySelectorAll('section[data-w]')].flatMap(section =>
      [...section.querySelectorAll('figure > script')].map(script => ({workload: section.dataset.w, ...JSON.parse(script.textContent)}))));
  const values = charts.filter(c => c.kind === 'distribution').flatMap(c => c.rows.flatMap(row => row.points.map(p => p[2])));
  const samples = run.cells.flatMap(cell => cell.samples ?? []).map(s => s.value);
  assert.equal(values.length, samples.length);
  const sum = all => all.reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum(values) / sum(samples) - 1) < 1e-4);
  for (const chart of charts.filter(c => c.kind === 'pareto')) {
    for (const place of chart.places) {
      const rows = chart.rows.filter(row => row.place === place);
      for (const row of rows.filter(r => r.frontier))
        assert.ok(!rows.some(other => other.frontier && other.x <= row.x && other.y <= row.y && (other.x < row.x || other.y < row.y)), `${row.s} is beaten`);
    }
  }
}));

// ---- bars --------------------------------------------------------------------------------------------------------------
/** A run of peers: one bar missed, one reached, one that the noise leaves open. */
function peers(r) {
  const samples = (value, spread = 0) => Array.from({length: 11}, (_, block) => ({block, value: value * (1 + 0.1 * Math.sin(block) + spread * (block % 5 - 2))}));
  const cells = [['slots', 'magazine_pool', {live: '0'}, 20, 0.004], ['slots', 'malloc', {live: '0'}, 100], ['random', 'magazine_pool', {live: '48'}, 120, 0.05],
                 ['random', 'no_allocator', {live: '48'}, 100], ['foreign', 'owner_pool', {batch: '16'}, 30, 0.001], ['foreign', 'malloc', {batch: '16'}, 100]];
  r.machines = r.maps = [];
  r.strategies = [...new Set(cells.map(cell => cell[1]))].map(name => ({name, kind: 'peer', threads: 'shared', control: name === 'no_allocator'}));
  r.workloads = ['slots', 'random', 'foreign'].map(name => ({name: `peers/${name}`, kind: 'peer', title: name, unit: 'ns/pair', baseline: name === 'random' ? 'no_allocator' : 'malloc', axis: 'live'}));
  r.cells = cells.map(([name, strategy, parameters, value, spread]) => ({workload: `peers/${name}`, strategy, parameters, samples: samples(value, spread)}));
}

for (const {width, scheme} of [{width: 1280, scheme: 'light'}, {width: 390, scheme: 'dark'}]) {
  test(`bars stand first with the ratios of run.json, each drawn against its limits, at ${width} px, ${scheme}`, () => {
    let cells;
    const file = report('peers', r => { peers(r); cells = r.cells; });
    return with_page({width, scheme}, async page => {
      await drawAll(page);
      assert.deepEqual(await faultsOfFigures(page), []);
      assert.deepEqual(await faultsOfWidth(page), []);
      assert.equal(await page.locator('main > section').first().getAttribute('id'), 'bars');
      assert.equal(await page.locator('.skip').getAttribute('href'), '#bars');
      const rows = await page.evaluate(() => [...document.querySelector('#bars table').tBodies[0].rows].map(row => [...row.cells].map(cell => cell.firstChild.textContent)));
      assert.deepEqual(rows.map(row => row[1]).filter(word => word !== 'unmeasured'), ['missed', 'undecided', 'reached']);
      for (const [i, first] of [0, 2, 4].entries()) {
        const logs = logRatios(cells[first], cells[first + 1]), [low, high] = interval(logs), shown = rows[i][3].split(' to ');
        assert.ok(near(rows[i][2], Math.exp(median(logs))) && near(shown[0], low) && near(shown[1], high), rows[i].join(' | '));
      }
      const drawn = await page.evaluate(() => {
        const figure = document.querySelector('#bars figure'), boxes = selector => [...figure.querySelectorAll(selector)].map(mark => mark.getBoundingClientRect());
        const middle = box => (box.left + box.right) / 2;
        const points = boxes('.mark-symbol.role-mark path'), [allowed, stretches] = ['.layer_0_marks path', '.layer_1_marks path'].map(boxes);
        return points.map((point, i) => [middle(point) - allowed[i].right, middle(stretches[i]) - allowed[i].right]);
      });
      assert.ok(drawn.length === 3 && drawn[0][0] > 0 && drawn[2][0] < 0 && drawn.every(([, stretch]) => stretch < 0), JSON.stringify(drawn));
      assert.ok(await page.locator('#bars .claims').first().getByText('where the bar is at most 0.15').isVisible());
      assert.equal(await page.locator('#bars').getByText('would tell').first().isVisible(), false);
      for (const link of await page.locator('#bars a[href^="#"]').all()) assert.equal(await page.locator(await link.getAttribute('href')).count(), 1);
    }, file);
  });
}

// ---- filter ----------------------------------------------------------------------------------------------------------
const shownSections = page => page.evaluate(() => [...document.querySelectorAll('section[data-w]')].filter(s => s.checkVisibility()).map(s => s.dataset.w));
const shownStrategies = page => page.evaluate(() => [...new Set([...document.querySelectorAll('main tr[data-s]')].filter(r => r.checkVisibility()).map(r => r.dataset.s))]);
const status = page => page.locator('.filter output').textContent();

test('the filter hides chapters, columns, rows and series, says how many are left, and keeps its state in the address', () => with_page({}, async page => {
  await page.locator('.filter summary').focus();
  await page.keyboard.press('Enter');
  await page.getByRole('checkbox', {name: 'context/slots', exact: true}).focus();
  await page.keyboard.press('Space');
  assert.deepEqual(await shownSections(page), ['context/slots']);
  assert.match(await status(page), /^1 of \d+ workloads/);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.standings th[data-w]')].filter(th => th.checkVisibility()).map(th => th.dataset.w)), ['context/slots']);

  await page.getByRole('checkbox', {name: 'hybrid', exact: true}).focus();
  await page.keyboard.press('Space');
  await page.getByRole('checkbox', {name: 'arena', exact: true}).check();
  assert.deepEqual(await shownStrategies(page), ['hybrid', 'arena']);
  const figure = page.locator('section[data-w="context/slots"] figure[data-kind=cost]');
  await figure.scrollIntoViewIfNeeded();
  await figure.locator('xpath=self::*[@data-drawn]').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('section[data-w="context/slots"] figure[data-kind=cost] .mark-line.role-mark path').length === 2);
  const hash = await page.evaluate(() => location.hash);
  assert.match(hash, /w=context%2Fslots/);
  assert.match(hash, /s=hybrid/);

  await page.getByRole('button', {name: 'Show all'}).click();
  assert.equal((await shownSections(page)).length, run.workloads.length);
  assert.equal(await page.evaluate(() => location.hash), '');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.querySelector('.filter details').open), false);
}));

test('an address with a filter shows just that, and one that is changed by hand too', () => with_page({hash: '#w=extra%2Fgrowth'}, async page => {
  assert.deepEqual(await shownSections(page), ['extra/growth']);
  await page.evaluate(() => { location.hash = '#s=leaky'; });
  await page.waitForFunction(() => document.querySelector('.filter output').textContent.includes('1 of 1'));
  assert.deepEqual(await shownStrategies(page), ['leaky']);
  assert.deepEqual((await shownSections(page)).sort(), ['extra/evals', 'extra/growth']);
  await page.evaluate(() => { location.hash = '#sq=POOL&wq=one%20context%20slot'; });
  await page.waitForFunction(() => document.querySelectorAll('section[data-w]:not([hidden])').length === 1);
  assert.deepEqual(await shownSections(page), ['context/slots']);
  assert.ok((await shownStrategies(page)).every(name => name.includes('pool')));
}));

test('a link to a hidden chapter shows it, and one to a folded table opens it', () => with_page({hash: '#w=extra%2Fgrowth'}, async page => {
  await page.evaluate(() => document.querySelector('a[href="#workload-1"]').click());
  assert.ok((await shownSections(page)).includes('context/slots'));
  const figure = page.locator('section[data-w="context/slots"] figure[data-kind=distribution]').first();
  await figure.locator('a.figures').click();
  assert.ok(await page.locator(`${await figure.locator('a.figures').getAttribute('href')}`).isVisible());
}));

/** Waits until what the address leads to is at rest, and fails unless its heading stands just below the filter's bar. */
async function stays(page, hash) {
  const where = () => page.evaluate(to => {
    const top = document.querySelector(`:is(${to}) :is(h2, figcaption)`).getBoundingClientRect().top, below = document.querySelector('.filter').getBoundingClientRect().bottom;
    return {below: top - below, end: scrollY + innerHeight >= document.documentElement.scrollHeight - 2};
  }, hash);
  let now = await where();
  for (let last = null, still = 0; still < 30;) {  // frames
    await page.evaluate(() => new Promise(requestAnimationFrame));
    [last, now] = [now, await where()];
    still = last.below === now.below ? still + 1 : 0;
  }
  assert.ok(now.below >= 0 && (now.below < 100 || now.end), `${hash}: ${JSON.stringify(now)}`);
}

for (const width of [1280, 390]) {
  test(`what a link leads to stays in sight below the filter's bar while charts are drawn around it, at ${width} px`, () => with_page({width}, async page => {
    const links = await page.locator('.claims > li a[href^="#"]:visible, nav a').all();
    assert.ok(links.length > 8, `${links.length} links`);
    for (const link of links) {
      await page.evaluate(() => scrollTo({top: 0, behavior: 'instant'}));
      await link.click();
      const hash = await link.getAttribute('href');
      await stays(page, hash);
    }
  }));
}

test('an address leads below the bar too', () => with_page({hash: '#workload-4'}, page => stays(page, '#workload-4')));

test('a claim leads to the first chart of its chapter', () => with_page({}, async page => {
  const faults = await page.evaluate(() => [...document.querySelectorAll('.claims a')].filter(link => {
    const exhibit = document.querySelector(link.hash);
    return !exhibit.id.startsWith('exhibit-') || exhibit.querySelector('figure') !== exhibit.closest('section').querySelector('figure');
  }).map(link => link.hash));
  assert.deepEqual(faults, []);
  assert.ok(await page.locator('.claims a').count() > 1);
}));

test('an oddly named strategy can be chosen, by box and by address', async () => {
  const odd = run.strategies.find(s => s.name.includes('script')).name;
  await with_page({hash: `#${new URLSearchParams([['s', visible(odd)]])}`}, async page => {
    assert.deepEqual(await shownStrategies(page), [visible(odd)]);
    await drawAll(page);
    assert.deepEqual((await faultsOfFigures(page)).filter(fault => !fault.startsWith('empty chart')), []);
  });
});

// ---- without scripts, on paper, for all --------------------------------------------------------------------------------
test('without scripts there is no chart and no filter, and every table is the same', async () => {
  const texts = page => page.evaluate(() => [...document.querySelectorAll('table')].map(t => t.textContent));
  let plain;
  await with_page({scripts: false, width: 390}, async page => {
    // The page's own scripts are off; the driver's still run.
    assert.equal(await page.locator('.filter').count(), 0);
    assert.equal(await page.locator('figure:visible').count(), 0);
    assert.ok(await page.getByText('Scripts are off').isVisible());
    assert.deepEqual(await faultsOfWidth(page), []);
    plain = await texts(page);
    const folded = page.locator('details').first();
    await folded.locator('summary').click();
    assert.ok(await folded.evaluate(d => d.open));
  });
  await with_page({}, async page => assert.deepEqual(await texts(page), plain));
  assert.ok(plain.length > 40);
});

test('on paper all is open, drawn and light, and the screen is as before afterwards', () => with_page({scheme: 'dark'}, async page => {
  const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await dark();
  await page.pdf({path: join(folder, 'report.pdf'), format: 'A4'});
  assert.equal(await page.evaluate(() => [...document.querySelectorAll('figure')].filter(f => !f.querySelector('svg, canvas')).length), 0);
  assert.equal(await page.evaluate(() => document.querySelectorAll('main details[open]').length), 0);
  assert.equal(await dark(), before);
  await page.emulateMedia({media: 'print'});
  for (const hidden of ['.filter', 'nav', '.skip', '.tools']) assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
  assert.notEqual(await dark(), before);
  await page.emulateMedia({media: 'screen'});
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.ok(await page.locator('details table').first().isVisible());
  assert.equal(await page.evaluate(() => document.querySelectorAll('main details:not([open])').length), 0);
  const inkAt = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--ink').trim());
  assert.equal(await inkAt(), '#1d2125');
}));

for (const scheme of ['light', 'dark']) {
  test(`text and lines stand out from the page, ${scheme}`, () => with_page({scheme}, async page => {
    const colours = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement), probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const names = ['page', 'ink', 'soft', 'good', 'bad', 'warn', 'link', 'wash', 'badwash', 'warnwash', ...Array.from({length: 12}, (_, i) => `s${i}`)];
      return Object.fromEntries(names.map(name => {
        probe.fillStyle = style.getPropertyValue(`--${name}`).trim();
        probe.fillRect(0, 0, 1, 1);
        return [name, [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)]];
      }));
    });
    const luminance = rgb => rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const contrast = (a, b) => { const [high, low] = [luminance(colours[a]), luminance(colours[b])].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05); };
    for (const [text, on] of [['ink', 'page'], ['soft', 'page'], ['good', 'page'], ['bad', 'page'], ['warn', 'page'], ['link', 'page'], ['ink', 'wash'], ['soft', 'wash'],
                              ['warn', 'warnwash'], ['ink', 'warnwash'], ['bad', 'badwash'], ['link', 'badwash']])
      assert.ok(contrast(text, on) >= 4.5, `${text} on ${on}: ${contrast(text, on).toFixed(2)}`);
    for (let i = 0; i < 12; ++i) assert.ok(contrast(`s${i}`, 'page') >= 3, `s${i}: ${contrast(`s${i}`, 'page').toFixed(2)}`);
  }));
}

test('landmarks, headings, tables and fields say what they are, and the skip link leads past the head', () => with_page({}, async page => {
  const faults = await page.evaluate(() => {
    const faults = [];
    for (const one of ['header', 'main', 'footer', 'h1', 'nav[aria-label]', 'form[role=search]'])
      if (document.querySelectorAll(one).length !== 1) faults.push(`${document.querySelectorAll(one).length} of ${one}`);
    let level = 0;
    for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
      if (Number(heading.tagName[1]) > level + 1) faults.push(`heading out of order: ${heading.textContent}`);
      level = Number(heading.tagName[1]);
    }
    for (const table of document.querySelectorAll('table')) {
      if (!table.caption?.textContent.trim()) faults.push('table without a caption');
      for (const th of table.querySelectorAll('th')) if (!th.scope) faults.push(`th without scope: ${th.textContent}`);
      for (const row of table.tBodies[0].rows) if (row.cells.length !== table.tHead.rows[0].cells.length) faults.push(`ragged row in ${table.caption.textContent}`);
    }
    for (const field of document.querySelectorAll('input, select, button, canvas'))
      if (!(field.labels?.length > 0 || field.ariaLabel || field.textContent.trim())) faults.push(`${field.tagName} without a name`);
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    if (new Set(ids).size !== ids.length) faults.push('an id stands twice');
    for (const link of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(link.hash.slice(1))) faults.push(`dead link ${link.hash}`);
    return faults;
  });
  assert.deepEqual(faults, []);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid');
}));

// ---- what could break it -----------------------------------------------------------------------------------------------
test('nothing in the page can make code of text', () => with_page({}, async page => {
  const policy = await page.locator('meta[http-equiv=Content-Security-Policy]').getAttribute('content');
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe-eval/);
  // Asked by a script of the page's own, later: what the driver evaluates is not held to the policy.
  await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = `setTimeout(() => {
      window.refused = [() => eval('1'), () => new Function('return 1')(), () => (async () => {}).constructor('1')()].map(
          make => { try { make(); return 'ran'; } catch (error) { return error.name; } });
    });`;
    document.body.append(script);
  });
  await page.waitForFunction(() => window.refused);
  assert.deepEqual(await page.evaluate(() => window.refused), ['EvalError', 'EvalError', 'EvalError']);
}));

test('no name, unit or parameter loses a chart', () => {
  const evil = text => `${text} \\ \\n "q" 'a' </script><script>alert(1)</script> {{x}} ${'${y}'} \u2028 λ🧠 [0].b datum.x`;
  const file = report('evil', r => {
    const strategies = new Map(r.strategies.map(s => [s.name, evil(s.name)])), workloads = new Map(r.workloads.map(w => [w.name, evil(w.name)]));
    for (const s of r.strategies) Object.assign(s, {name: strategies.get(s.name), twin_of: strategies.get(s.twin_of) ?? '', when_full: evil('full')});
    for (const w of r.workloads)
      Object.assign(w, {name: workloads.get(w.name), baseline: strategies.get(w.baseline), title: evil(w.title), question: evil('?'), unit: evil('ns'), axis: w.axis && w.axis !== 'threads' ? evil(w.axis) : w.axis});
    for (const c of r.cells) {
      Object.assign(c, {workload: workloads.get(c.workload), strategy: strategies.get(c.strategy)});
      c.parameters = Object.fromEntries(Object.entries(c.parameters ?? {}).map(([name, value]) => name === 'threads' ? [name, value] : [evil(name), /^\d+$/.test(value) ? value : evil(value)]));
      for (const key of ['series', 'parts']) if (c[key]) c[key] = Object.fromEntries(Object.entries(c[key]).map(([name, value]) => [evil(name), value]));
    }
    for (const m of r.machines) m.name = evil(m.name);
    for (const m of r.maps) {
      m.name = evil(m.name);
      for (const p of m.placements) p.tensor = evil(p.tensor);
    }
  });
  return with_page({}, async page => {
    await openAll(page);
    await drawAll(page);
    assert.deepEqual(await faultsOfFigures(page), []);
    assert.deepEqual(await faultsOfWidth(page), []);
    const seen = await page.evaluate(() => [...new Set([...document.querySelectorAll('figure')].map(figure => figure.dataset.kind))]);
    assert.deepEqual(kinds.filter(kind => !seen.includes(kind)), []);
    assert.equal(await page.locator('.plot.broken').count(), 0);
  }, file);
});

test('the main charts can be had as files that stand by themselves', async () => {
  const to = join(folder, 'pictures');
  const written = execFileSync('node', [join(web, 'pictures.mjs'), made, to], {encoding: 'utf8'}).trim().split('\n');
  for (const name of ['verdicts-context.svg', 'cost-context-slots.svg', 'pareto-context-slots.svg', 'map-llama-2-7b.png'])
    assert.ok(written.includes(join(to, name)), `${name} is not among ${written}`);
  const page = await browser.newPage();
  for (const file of written) {
    assert.ok(statSync(file).size > 2000, file);
    if (!file.endsWith('.svg')) continue;
    assert.doesNotMatch(readFileSync(file, 'utf8'), /var\(|<script/);
    await page.goto(pathToFileURL(resolve(file)).href);
    assert.ok(await page.evaluate(() => document.documentElement.localName === 'svg' && document.querySelectorAll('.role-mark path').length > 0), file);
  }
  await page.close();
});

/** Rectangles of a row of steps, one above the other, each for some steps. */
function largeMap(tensors) {
  const steps = 5000, placements = [];
  const tops = new Float64Array(steps);
  for (let i = 0; i < tensors; ++i) {
    const first = (i * 7919) % steps, last = Math.min(steps - 1, first + (i * 31) % 40), bytes = 1024 * (1 + (i * 13) % 64);
    let offset = 0;
    for (let step = first; step <= last; ++step) offset = Math.max(offset, tops[step]);
    for (let step = first; step <= last; ++step) tops[step] = offset + bytes;
    placements.push({tensor: `blk.${i >> 5}.tensor-${i}`, first, last, offset, bytes});
  }
  const live = new Float64Array(steps);
  for (const p of placements) for (let step = p.first; step <= p.last; ++step) live[step] += p.bytes;
  return {name: 'large', steps, bytes: Math.max(...tops), lower_bound: Math.max(...live), placements};
}

test('a map of 100000 rectangles answers in time, by pointer, wheel and key, in a file of less than 8 MB', () => {
  const map = largeMap(100000);
  const file = report('large', r => { r.maps = [map]; });
  assert.ok(statSync(file).size < 8e6, `${statSync(file).size} bytes`);
  return with_page({}, async page => {
    const canvas = page.locator('#maps canvas');
    await page.locator('#maps figure').scrollIntoViewIfNeeded();
    await canvas.waitFor();
    await canvas.scrollIntoViewIfNeeded();
    const pixels = () => canvas.evaluate(c => c.toDataURL());
    /** Milliseconds until the map has been drawn anew: some 150 on an idle machine, and no machine is this busy. */
    const answer = async (name, act) => {
      const old = await pixels(), start = performance.now();
      await act();
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
      const took = performance.now() - start;
      assert.ok(await pixels() !== old, `${name} draws nothing else`);
      assert.ok(took < 10_000, `${name} took ${took.toFixed(0)} ms`);
      return took;
    };
    const box = await canvas.boundingBox();
    const at = (x, y) => [box.x + 66 + x * (box.width - 76), box.y + 8 + y * (box.height - 44)];
    const times = {};
    times.button = await answer('a button', () => page.getByRole('button', {name: 'Zoom in'}).click());
    times.whole = await answer('the whole', () => page.getByRole('button', {name: 'Show the whole plan'}).click());
    await canvas.focus();
    await canvas.scrollIntoViewIfNeeded();
    await page.mouse.move(...at(0.4, 0.6));
    times.wheel = await answer('the wheel', () => page.mouse.wheel(0, -300));
    times.drag = await answer('a drag', async () => {
      await page.mouse.move(...at(0.2, 0.2));
      await page.mouse.down();
      await page.mouse.move(...at(0.5, 0.6), {steps: 3});
      await page.mouse.up();
    });
    times.key = await answer('a key', () => page.keyboard.press('0'));
    for (let i = 0; i < 7; ++i) await answer('plus', () => page.keyboard.press('+'));
    const told = await page.locator('#maps output').textContent();
    // What lies at the middle of the plan, found by the other way round.
    const step = map.steps / 2, byte = Math.max(map.bytes, map.lower_bound) * 1.04 / 2;
    const there = map.placements.findLast(p => p.first <= step && step < p.last + 1 && p.offset <= byte && byte < p.offset + p.bytes);
    assert.equal(told.startsWith('tensor '), there !== undefined);
    if (there) assert.ok(told.includes(there.tensor) && told.includes(`${there.first} to ${there.last}`), told);
    await page.mouse.move(...at(0.5, 0.5));
    await page.mouse.move(...at(0.501, 0.5));
    if (there) assert.match(await page.locator('#tip').textContent(), /^tensorblk.*steps.*offset.*size/);
    console.log(`# answered in ${Object.entries(times).map(([name, ms]) => `${name} ${ms.toFixed(0)} ms`).join(', ')}`);
  }, file);
});
