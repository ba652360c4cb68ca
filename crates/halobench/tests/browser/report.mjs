// Opens a report's page in Chromium and looks at it as a reader would. Called by tests/report_browser.rs:
//
//   CHROMIUM=/usr/bin/chromium node report.mjs PAGE.html EXPECTED.json SCREENSHOT-PREFIX
//
// Prints a line `ok ...` for each check and ends with 1 at the first that fails. Screenshots of a laptop and a phone,
// light and dark, stay beside the page for people.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [file, expectedFile, prefix] = process.argv.slice(2);
const expected = JSON.parse(fs.readFileSync(expectedFile, 'utf8'));
const url = pathToFileURL(file).href;
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const LAPTOP = { viewport: { width: 1280, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

// Runs `look` on the page in a browser of its own, with a fresh profile; every request and complaint is noted.
async function visit(options, look) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'halobench-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM, args: FLAGS, headless: true, acceptDownloads: true, ...options,
  });
  try {
    const page = await context.newPage();
    const noted = { requests: [], complaints: [] };
    page.on('request', r => noted.requests.push(r.url()));
    page.on('console', m => { if (['error', 'warning'].includes(m.type())) noted.complaints.push(m.text()); });
    page.on('pageerror', e => noted.complaints.push(e.message));
    await page.goto(url);
    await look(page, noted);
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

async function check(words, work) {
  await work();
  console.log(`ok ${words}`);
}

const grid = page => page.$$eval('.grid tr[data-c]', rows => rows.map(r => [...r.cells].map(c => c.innerText.trim())));
const painted = canvas => canvas.evaluate(c => {
  const copy = Object.assign(document.createElement('canvas'), { width: c.width, height: c.height }).getContext('2d', { willReadFrequently: true });
  copy.drawImage(c, 0, 0);
  const { data } = copy.getImageData(0, 0, c.width, c.height);
  const seen = new Set();
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 128) {
      count++;
      seen.add((data[i] >> 4) << 8 | (data[i + 1] >> 4) << 4 | data[i + 2] >> 4);
    }
  }
  return { count, colours: seen.size };
});

// Text that is too faint for the ground it stands on, by WCAG's AA.
const faint = page => page.evaluate(() => {
  const parse = text => {
    const n = text.match(/[\d.]+/g).map(Number);
    const unit = text.startsWith('color(') ? 255 : 1;
    return { rgb: n.slice(0, 3).map(v => v * unit), alpha: n[3] ?? 1 };
  };
  const luminance = rgb => {
    const [r, g, b] = rgb.map(v => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const { rgb, alpha } = parse(getComputedStyle(e).backgroundColor);
      if (alpha > 0.99) return rgb;
    }
    return [255, 255, 255];
  };
  const found = new Map();
  let looked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest('script,style,.skip,.unseen')) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(style.color).rgb), luminance(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    looked++;
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (contrast < least) found.set(`${element.tagName}.${element.className} in ${element.parentElement.className}`, contrast.toFixed(2));
  }
  return { looked, found: [...found] };
});

const overflow = page => page.evaluate(() => ({
  page: document.documentElement.scrollWidth, window: innerWidth,
  wide: [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll,.legend,nav,.skip,.unseen,script'))
    .slice(0, 5).map(e => `${e.tagName}.${e.className}`),
}));

await visit({ ...LAPTOP, colorScheme: 'light' }, async (page, noted) => {
  const before = await grid(page);
  await check('the grid has the cases and engines of the report, the subject first', async () => {
    assert.deepEqual(before.map(r => r[0]), expected.cases);
    const engines = await page.$$eval('.grid thead th .tag', ths => ths.map(t => t.textContent));
    assert.deepEqual([...engines].sort(), [...expected.engines].sort());
    assert.equal(engines[0], 'halocline');
    assert.ok(before.every(r => r.length === engines.length + 1));
  });
  await check('void rows and missing engines are said in words', async () => {
    const words = before.flat().filter(t => t === 'VOID').length;
    assert.equal(words, expected.void);
    assert.equal(await page.locator('.grid td.void').count(), expected.void);
    for (const name of expected.missing) {
      assert.match(await page.locator('.missing tr', { hasText: name }).innerText(), /pass --/);
    }
    assert.equal(await page.locator('.troubles li').count(), expected.troubles);
  });
  await check('notes are beside the troubles', async () => {
    assert.equal(await page.locator('.notes li').count(), expected.notes);
    const daggers = before.flat().filter(t => t.startsWith('†')).length;
    assert.equal(daggers, expected.other);
  });
  await check('words of the report are text and never markup', async () => {
    assert.notEqual(await page.title(), 'broken');
    assert.equal(await page.locator('img').count(), 0);
  });
  await check('the choice of the metric changes the cells, and back', async () => {
    const options = await page.locator('#metric option').allInnerTexts();
    assert.ok(options.length >= 8, options.join());
    const shown = new Set([JSON.stringify(before)]);
    for (const label of ['latency p99', 'CPU per operation', 'memory of its own']) {
      await page.selectOption('#metric', { label });
      shown.add(JSON.stringify(await grid(page)));
    }
    assert.equal(shown.size, 4);
    await page.selectOption('#metric', { label: 'throughput' });
    assert.deepEqual(await grid(page), before, 'the script writes cells as the lab does');
  });
  await check('the subject can be compared with each engine', async () => {
    await page.getByLabel('halocline to each').check({ force: true });
    const after = await grid(page);
    assert.notDeepEqual(after, before);
    const own = await page.$$eval('.grid tr[data-c] td:nth-child(2)', tds => tds.map(t => t.innerText));
    assert.ok(own.every(t => !t.includes('×')), 'it has no ratio to itself');
    await page.getByLabel('each to the best other').check({ force: true });
    assert.deepEqual(await grid(page), before);
  });
  await check('a cell tells its rounds to the pointer and to the keyboard', async () => {
    const cell = page.locator('.grid tr[data-c] td:not(.void)').first();
    await cell.hover();
    const told = await page.locator('#tip').innerText();
    assert.match(told, /median of \d rounds/);
    assert.match(told, /spread \d+ %/);
    await cell.focus();
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await page.locator('#tip').innerText(), told);
    await page.keyboard.press('Escape');
    assert.ok(await page.locator('#tip').isHidden());
  });
  await check('charts of every kind are drawn, with lines in colours', async () => {
    for (const kind of ['curve', 'time', 'scale']) {
      const figure = page.locator(`figure[data-chart=${kind}]`).first();
      await figure.scrollIntoViewIfNeeded();
      const canvas = figure.locator('canvas');
      await canvas.waitFor();
      await page.waitForTimeout(200);
      const { count, colours } = await painted(canvas);
      assert.ok(count > 1500 && colours > 8, `${kind}: ${count} pixels, ${colours} colours`);
      assert.match(await canvas.getAttribute('aria-label'), /halocline/);
    }
  });
  await check('a chart names values at the pointer', async () => {
    await page.locator('figure[data-chart=curve] .u-over').first().hover();
    assert.match(await page.locator('#tip').innerText(), /no longer than|longest/);
    await page.mouse.move(2, 2);
  });
  await check('an engine can be taken out of the charts', async () => {
    const figure = page.locator('figure[data-chart=curve]').first();
    await figure.scrollIntoViewIfNeeded();
    const full = await painted(figure.locator('canvas'));
    const chip = page.locator('.chip').nth(1);
    await chip.click();
    assert.equal(await chip.getAttribute('aria-pressed'), 'false');
    await page.waitForTimeout(100);
    assert.notDeepEqual(await painted(figure.locator('canvas')), full);
    await chip.click();
  });
  await check('the result file comes out of the page as it went in', async () => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')]);
    const result = JSON.parse(fs.readFileSync(await download.path(), 'utf8'));
    assert.deepEqual(result, expected.result);
  });
  await check('text stands out from its ground in light', async () => {
    const { looked, found } = await faint(page);
    assert.ok(looked > 150, `${looked}`);
    assert.deepEqual(found, []);
  });
  await check('the switch of colours wears dark, and text stands out there too', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    const canvas = page.locator('figure[data-chart=curve] canvas').first();
    const drawn = await painted(canvas);
    await page.click('#theme');
    assert.equal(await ground(), light);
    await page.click('#theme');
    assert.notEqual(await ground(), light);
    assert.notDeepEqual(await painted(page.locator('figure[data-chart=curve] canvas').first()), drawn);
    assert.deepEqual((await faint(page)).found, []);
    await page.click('#theme');
    assert.equal(await ground(), light);
  });
  await check('headings and tables are named for readers that hear', async () => {
    const bad = await page.evaluate(() => [
      ...[...document.querySelectorAll('main table')].filter(t => !t.caption).map(() => 'a table without a caption'),
      ...[...document.querySelectorAll('thead th, tr > th')].filter(t => !t.scope).map(t => `no scope: ${t.innerText}`),
      ...[...document.querySelectorAll('button, select')].filter(b => !(b.innerText || b.labels?.length)).map(b => b.id),
    ]);
    assert.deepEqual(bad, []);
    assert.equal(await page.locator('h1').count(), 1);
  });
  await check('the window can be narrower than the grid', async () => {
    for (const width of [1280, 800]) {
      await page.setViewportSize({ width, height: 860 });
      await page.waitForTimeout(150);
      const { page: wide, window, wide: who } = await overflow(page);
      assert.ok(wide <= window, `${width}: ${wide} > ${window}: ${who}`);
    }
  });
  await check('the page asked for nothing and complained of nothing', async () => {
    const others = noted.requests.filter(r => r !== url && !r.startsWith('data:') && !r.startsWith('blob:'));
    assert.deepEqual(others, []);
    assert.deepEqual(noted.complaints, []);
  });
  await page.setViewportSize(LAPTOP.viewport);
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${prefix}-laptop-light.png` });
});

await visit({ ...LAPTOP, colorScheme: 'dark' }, async page => {
  await check('the system\'s dark is worn', async () => {
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(19, 22, 26)');
    assert.deepEqual((await faint(page)).found, []);
  });
  await page.screenshot({ path: `${prefix}-laptop-dark.png` });
});

await visit({ ...PHONE, colorScheme: 'light' }, async page => {
  await check('a phone scrolls the grid and not the page, and keeps the names of the cases', async () => {
    const { page: wide, window, wide: who } = await overflow(page);
    assert.ok(wide <= window, `${wide} > ${window}: ${who}`);
    assert.deepEqual(who, []);
    const moved = await page.evaluate(() => {
      const box = document.querySelector('.scroll.tall');
      const name = document.querySelector('.grid tr[data-c] th');
      const before = name.getBoundingClientRect().left;
      box.scrollLeft = 200;
      return [box.scrollLeft, name.getBoundingClientRect().left - before];
    });
    assert.ok(moved[0] > 0, 'the grid is wider than a phone');
    assert.equal(moved[1], 0);
  });
  await check('a tap tells of a cell', async () => {
    await page.evaluate(() => { document.querySelector('.scroll.tall').scrollLeft = 0; });
    await page.locator('.grid tr[data-c] td:not(.void)').first().tap();
    assert.match(await page.locator('#tip').innerText(), /median of/);
  });
  await page.screenshot({ path: `${prefix}-phone-light.png` });
});

await visit({ ...LAPTOP, javaScriptEnabled: false }, async page => {
  await check('without scripts the grid, the bars and all figures are there, and nothing that needs one', async () => {
    assert.equal(await page.locator('.grid tr[data-c]').count(), expected.cases.length);
    assert.ok(await page.locator('.grid tr[data-c] td').first().isVisible());
    assert.ok((await page.locator('.grid tr[data-c] td').first().innerText()).match(/×|VOID|FAILED|not/));
    assert.ok(await page.locator('.bars li').first().isVisible());
    assert.equal(await page.locator('.case details').count() >= expected.cases.length, true);
    await page.locator('.case summary').first().click();
    assert.ok(await page.locator('.case .figures').first().isVisible());
    for (const js of await page.locator('.js').all()) assert.ok(await js.isHidden());
  });
});
