// Headless Chromium for the reports: opens one under watch and draws all that is in sight of it.
import {existsSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

/** Why there is no browser to be had: what makes a command end with 77. */
export class NoBrowser extends Error {}

export async function launch() {
  const path = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
  if (!path) throw new NoBrowser('skipped: no Chromium in /usr/bin');
  let chromium;
  try {
    ({chromium} = await import('playwright-core'));
  } catch {
    throw new NoBrowser('skipped: no playwright-core; run `npm ci --ignore-scripts` in reports/web');
  }
  return chromium.launch({executablePath: path, headless: true, args: ['--no-sandbox', '--disable-gpu']});
}

/** A report in a page of its own. `faults` collects every message on the console, every error and every request for
    anything but the report. */
export async function open(browser, report, {width = 1280, height = 900, scheme = 'light', scripts = true, hash = ''} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, javaScriptEnabled: scripts});
  const page = await context.newPage();
  const url = pathToFileURL(resolve(report)).href, faults = [];
  page.on('console', message => faults.push(`console, ${message.type()}: ${message.text()}`));
  page.on('pageerror', error => faults.push(`error: ${error.message}`));
  page.on('request', request => {
    const to = request.url();
    if (to.split('#')[0] !== url && !to.startsWith('data:')) faults.push(`the page asked for ${to}`);
  });
  await page.goto(url + hash, {waitUntil: 'load'});
  return {page, faults};
}

/** Scrolls through the page as a reader would, until every figure that is not folded away is drawn. */
export async function drawAll(page) {
  await page.evaluate(async () => {
    const settled = figure => 'drawn' in figure.dataset || figure.querySelector('.plot.broken') || figure.querySelector('.plot').clientWidth === 0;
    for (const figure of document.querySelectorAll('figure')) {
      if (figure.checkVisibility() === false) continue;
      figure.scrollIntoView({behavior: 'instant'});
      for (let frame = 0; frame < 600 && !settled(figure); ++frame) await new Promise(requestAnimationFrame);
    }
    scrollTo({top: 0, behavior: 'instant'});
  });
}

/** What is wrong with the figures that a reader can see. */
export async function faultsOfFigures(page) {
  return page.evaluate(() => {
    const marks = 'svg .role-mark path, svg .role-mark text';
    const inked = canvas => canvas !== null && canvas.width > 0 &&
        canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte !== 0);
    return [...document.querySelectorAll('figure')].filter(figure => figure.checkVisibility()).flatMap(figure => {
      const caption = figure.querySelector('figcaption').firstChild.textContent.trim();
      const table = document.getElementById(figure.querySelector('figcaption a').hash.slice(1));
      const faults = [];
      if (!figure.querySelector(marks) && !inked(figure.querySelector('canvas'))) faults.push(`empty chart: ${caption}`);
      if (figure.querySelector('.plot').getAttribute('role') !== 'img' && !figure.querySelector('canvas[role=img][aria-label]')) faults.push(`chart without a name: ${caption}`);
      if (table?.tagName !== 'TABLE' || table.tBodies[0].rows.length === 0) faults.push(`chart without a table: ${caption}`);
      return faults;
    });
  });
}

export async function faultsOfWidth(page) {
  const {inner, outer} = await page.evaluate(() => ({inner: document.documentElement.scrollWidth, outer: innerWidth}));
  return inner > outer ? [`the page is ${inner} px wide in a window of ${outer} px`] : [];
}
