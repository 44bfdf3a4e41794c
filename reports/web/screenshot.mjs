// screenshot.mjs REPORT [--png FILE] [--width 1280] [--scheme light|dark] [--no-scripts] [--clip HEIGHT]
// Opens a report in headless Chromium, judges it and keeps a picture of the whole page or of its first HEIGHT pixels.
// Exit: 0 good, 1 faults (console errors, requests, an undrawn chart, a page that scrolls sideways), 2 wrong call,
// 77 Chromium or playwright-core is not here.
import {existsSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {parseArgs} from 'node:util';

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
      clip: {type: 'string'}, 'no-scripts': {type: 'boolean', default: false},
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

const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
if (!browserPath) leave(77, 'skipped: no Chromium in /usr/bin');
let chromium;
try {
  ({chromium} = await import('playwright-core'));
} catch {
  leave(77, 'skipped: no playwright-core; run `npm ci --ignore-scripts` in reports/web');
}

const browser = await chromium.launch({executablePath: browserPath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
const faults = [];
try {
  const page = await browser.newPage({
    viewport: {width, height: Number(options.clip ?? 900)}, colorScheme: options.scheme, javaScriptEnabled: !options['no-scripts'],
  });
  const url = pathToFileURL(resolve(report)).href;
  page.on('console', message => message.type() === 'error' && faults.push(`console: ${message.text()}`));
  page.on('pageerror', error => faults.push(`error: ${error.message}`));
  page.on('request', request => {
    const to = request.url();
    if (to !== url && !to.startsWith('data:')) faults.push(`the page asked for ${to}`);
  });
  await page.goto(url, {waitUntil: 'load'});

  const plots = page.locator('figure .plot');
  const drawn = page.locator('figure .plot svg g.mark-line path, figure .plot svg g.mark-rect path, figure .plot svg g.mark-symbol path');
  const wanted = await plots.count();
  if (!options['no-scripts']) {
    const allDrawn = () => [...document.querySelectorAll('figure .plot')].every(plot => plot.querySelector('svg g.mark-group') || plot.classList.contains('broken'));
    await page.waitForFunction(allDrawn, null, {timeout: 30000}).catch(() => {});
    for (const plot of await plots.all()) {
      const marks = await plot.locator('svg .role-mark path').count();
      if (marks === 0) faults.push(`empty chart: ${await plot.locator('xpath=../figcaption').textContent()}`);
    }
  }
  const {inner, outer} = await page.evaluate(() => ({inner: document.documentElement.scrollWidth, outer: window.innerWidth}));
  if (inner > outer) faults.push(`the page is ${inner} px wide in a window of ${outer} px`);

  if (options.png) {
    await page.screenshot({path: options.png, fullPage: options.clip === undefined});
  }
  console.log(`${wanted} charts, ${await drawn.count()} marks, ${await page.locator('table').count()} tables, ${width} px ${options.scheme}`);
} finally {
  await browser.close();
}
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
