// pictures.mjs REPORT FOLDER [--scheme light|dark]
// Writes the main charts of a report into FOLDER, for a README or a talk: who stands where, cost over the axis and time
// against memory as SVG, memory maps as PNG, each named after its kind and workload. Prints their names.
// Exit: 0 written, 1 a chart could not be drawn, 2 wrong call, 77 Chromium or playwright-core is not here.
import {existsSync, mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import {NoBrowser, launch, open} from './browser.mjs';

function leave(code, text) {
  console.error(text);
  process.exit(code);
}

let call;
try {
  call = parseArgs({allowPositionals: true, options: {scheme: {type: 'string', default: 'light'}}});
} catch (error) {
  leave(2, `pictures: ${error.message}`);
}
const {values: {scheme}, positionals: [report, folder, ...rest]} = call;
if (!folder || rest.length > 0) leave(2, 'pictures: expected a report and a folder');
if (!['light', 'dark'].includes(scheme)) leave(2, 'pictures: --scheme is light or dark');
if (!existsSync(report)) leave(2, `pictures: no file ${report}`);

/** The chart as a file of its own: the page's colours put in for the variables, on the page's ground. */
function standalone(figure) {
  const svg = figure.querySelector('.plot svg').cloneNode(true), style = getComputedStyle(document.documentElement);
  const text = attribute => attribute.replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  for (const element of [svg, ...svg.querySelectorAll('*')])
    for (const {name, value} of [...element.attributes]) if (value.includes('var(')) element.setAttribute(name, text(value));
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of [['width', '100%'], ['height', '100%'], ['fill', text('var(--page)')]]) ground.setAttribute(name, value);
  svg.prepend(ground);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', figure.querySelector('figcaption').firstChild.textContent.trim());
  return `${new XMLSerializer().serializeToString(svg)}\n`;
}

const browser = await launch().catch(error => leave(error instanceof NoBrowser ? 77 : 1, error.message));
let all;
try {
  const {page, faults} = await open(browser, report, {width: 860, scheme});
  all = faults;
  // Beside its table a chart may be narrow.
  await page.addStyleTag({content: '.exhibit, .pair { display: block; } .filter { display: none; }'});
  mkdirSync(folder, {recursive: true});
  const written = new Set();
  for (const figure of await page.locator('figure').all()) {
    if (!await figure.isVisible()) continue;
    const {kind, of} = await figure.evaluate(f => ({kind: f.dataset.kind, of: f.closest('[data-w]')?.dataset.w ?? f.querySelector('figcaption').firstChild.textContent.trim().split(/[: ]/)[0]}));
    const name = `${kind}-${of}`.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/-$/, '');
    if (!['verdicts', 'cost', 'pareto', 'map'].includes(kind) || written.has(name)) continue;
    await figure.scrollIntoViewIfNeeded();
    await figure.locator('xpath=self::*[@data-drawn]').waitFor({timeout: 30000}).catch(() => faults.push(`${name} was not drawn`));
    if (kind === 'map') await figure.locator('canvas').screenshot({path: join(folder, `${name}.png`)});
    else if (await figure.locator('svg').count() > 0) writeFileSync(join(folder, `${name}.svg`), await figure.evaluate(standalone));
    else continue;
    written.add(name);
    console.log(join(folder, `${name}.${kind === 'map' ? 'png' : 'svg'}`));
  }
} finally {
  await browser.close();
}
for (const fault of all) console.error(fault);
process.exit(all.length > 0 ? 1 : 0);
