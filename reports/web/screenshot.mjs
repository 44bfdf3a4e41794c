// screenshot.mjs REPORT [--png FILE] [--width 1280] [--scheme light|dark] [--no-scripts] [--clip HEIGHT] [--at ID]
// Opens a report in headless Chromium, judges it and keeps a picture of the whole page or of HEIGHT pixels from the
// top, or from the element ID, on.
// Exit: 0 good, 1 faults (a message on the console, a request, an undrawn chart, a page that scrolls sideways), 2 wrong
// call, 77 Chromium or playwright-core is not here.
import {existsSync} from 'node:fs';
import {parseArgs} from 'node:util';
import {NoBrowser, drawAll, faultsOfFigures, faultsOfWidth, launch, open} from './browser.mjs';

function leave(code, text) {
  console.error(text);
  process.exit(code);
}

let call;
try {
  call = parseArgs({
    allowPositionals: true,
    options: {
      png: {type: 'string'}, width: {type: 'string', default: '1280'}, scheme: {type: 'string', default: 'light'},
      clip: {type: 'string'}, at: {type: 'string'}, 'no-scripts': {type: 'boolean', default: false},
    },
  });
} catch (error) {
  leave(2, `screenshot: ${error.message}`);
}
const {values: options, positionals: [report, ...rest]} = call;
const width = Number(options.width), clip = Number(options.clip ?? 1);
if (!report || rest.length > 0) leave(2, 'screenshot: expected one report');
if (!(width >= 100) || !(clip > 0)) leave(2, 'screenshot: --width and --clip are pixels');
if (!['light', 'dark'].includes(options.scheme)) leave(2, 'screenshot: --scheme is light or dark');
if (!existsSync(report)) leave(2, `screenshot: no file ${report}`);

const browser = await launch().catch(error => leave(error instanceof NoBrowser ? 77 : 1, error.message));
const all = [];
try {
  const scripts = !options['no-scripts'];
  const {page, faults} = await open(browser, report, {width, height: Number(options.clip ?? 900), scheme: options.scheme, scripts});
  if (scripts) {
    await drawAll(page);
    all.push(...await faultsOfFigures(page));
  }
  all.push(...await faultsOfWidth(page), ...faults);
  if (options.at) await page.evaluate(id => document.getElementById(id)?.scrollIntoView({behavior: 'instant'}), options.at);
  if (options.png) await page.screenshot({path: options.png, fullPage: options.clip === undefined});
  console.log(`${await page.locator('figure').count()} charts, ${await page.locator('table').count()} tables, ${width} px ${options.scheme}`);
} finally {
  await browser.close();
}
for (const fault of all) console.error(fault);
process.exit(all.length > 0 ? 1 : 0);
