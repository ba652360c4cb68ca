// The page's script: the choice of the metric, details on demand, the curves, the colours, the download.
// All figures come from #view, made by the lab; nothing is computed here but positions.
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('scripted');
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const view = JSON.parse($('#view').textContent);
  const tip = $('#tip');

  // ---- figures in words: as the lab writes them -------------------------------------------------------------
  const digits = v => {
    if (v === 0) return '0';
    const exponent = Number(Math.abs(v).toExponential(2).split('e')[1]);
    return v.toFixed(Math.min(9, Math.max(0, 2 - exponent)));
  };
  const scaled = (v, steps) => {
    const [size, unit] = steps.find(([size]) => v < size * 999.5) || steps[steps.length - 1];
    return digits(v / size) + unit;
  };
  const time = ns => scaled(ns, [[1, ' ns'], [1e3, ' µs'], [1e6, ' ms'], [1e9, ' s']]);
  const show = {
    rate: v => scaled(v, [[1, '/s'], [1e3, ' k/s'], [1e6, ' M/s'], [1e9, ' G/s']]),
    micros: v => time(v * 1e3),
    seconds: v => time(v * 1e9),
    times: digits,
    mib: v => (v >= 1024 ? digits(v / 1024) + ' GB' : digits(v) + ' MB'),
  };
  const times = v =>
    (v >= 99.5 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v >= 0.0995 ? v.toFixed(2) : v.toFixed(3)) + '×';
  const escaped = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
  const name = e => view.engines[e].name;

  // ---- the grid ---------------------------------------------------------------------------------------------
  const EVEN = 1.05;
  const state = { metric: 0, against: 'best' };

  function shade(ratio) {
    if (ratio < EVEN && ratio > 1 / EVEN) return ['even', '≈'];
    const far = Math.max(ratio, 1 / ratio);
    const step = far < 1.5 ? 1 : far < 3 ? 2 : far < 10 ? 3 : 4;
    return ratio > 1 ? ['w' + step, '▲'] : ['l' + step, '▼'];
  }

  // A cell's class and content. Cells of `view` are [values of the rounds, median in words, ratio, subject's ratio].
  function content(c, e) {
    const found = view.cases[c].cells[state.metric][e];
    const why = view.cases[c].why[e];
    if (!found) return why ? [why === 'VOID' ? 'void' : why === 'FAILED' ? 'failed' : 'none', escaped(why)] : ['none', '–'];
    const [, absolute, ratio, versus] = found;
    const small = `<small>${view.cases[c].other[e] ? '† ' : ''}${absolute}</small>`;
    if (state.against === 'subject') {
      if (versus === null || view.engines[e].null) return ['none', small];
      const [css, mark] = shade(versus);
      return [css, `<b>${mark} ${times(versus)}</b>${small}`];
    }
    if (!ratio) return ['none', small];
    const [median, min, max] = ratio;
    const unsure = min < 1 && max > 1 ? ' ◇' : '';
    return [ratio[4], `<b>${shade(median)[1]} ${times(median)}${unsure}</b>${small}`];
  }

  const rows = all('.grid tr[data-c]').map(tr => [Number(tr.dataset.c), all('td', tr)]);
  function fill() {
    for (const [c, cells] of rows) {
      cells.forEach((td, i) => {
        [td.className, td.innerHTML] = content(c, view.columns[i]);
      });
    }
    const metric = view.metrics[state.metric];
    $('#help').textContent = `${metric.help} ${metric.more ? 'More' : 'Less'} is better.`;
    const title = metric.label[0].toUpperCase() + metric.label.slice(1);
    const subject = view.subject === null ? '' : name(view.subject);
    $('#caption').textContent =
      state.against === 'best' ? `${title} against the best of the other engines` : `${title} of ${subject} against each engine`;
    all('.grid tfoot td').forEach((td, i) => {
      const e = view.columns[i];
      const found = view.cases.map(c => c.cells[state.metric][e]).filter(f => f && f[2]);
      td.textContent = found.length ? `${found.filter(f => f[2][0] >= EVEN).length} of ${found.length}` : '–';
    });
  }

  const select = $('#metric');
  if (select) {
    select.value = '0';
    select.addEventListener('change', () => { state.metric = Number(select.value); fill(); });
  }
  all('#against input').forEach(input =>
    input.addEventListener('change', () => { state.against = input.value; fill(); }));

  // ---- details of a cell, at the pointer, at a tap and at the keyboard's focus --------------------------------
  function details(c, e) {
    const metric = view.metrics[state.metric];
    const found = view.cases[c].cells[state.metric][e];
    let html = `<b>${escaped(name(e))} · ${escaped(view.cases[c].name)}</b>${metric.label}`;
    if (!found) return `${html}: ${escaped(view.cases[c].why[e] || 'no figure')}`;
    const [values, absolute, ratio, versus] = found;
    const format = show[metric.unit];
    html += ` <strong>${absolute}</strong>, median of ${values.length} ${values.length === 1 ? 'round' : 'rounds'}<br>`;
    if (values.length > 1) {
      const [min, max] = [Math.min(...values), Math.max(...values)];
      const middle = [...values].sort((a, b) => a - b)[values.length >> 1];
      html += `rounds: ${values.map(format).join(', ')}<br>`;
      if (middle > 0) html += `spread ${(((max - min) / middle) * 100).toFixed(0)} %<br>`;
    }
    const other = view.cases[c].other[e];
    if (other) html += `† run in another durability class (commits survive ${escaped(other)}), compared with nobody`;
    if (ratio) {
      html += `${times(ratio[0])} of the best other, mostly ${escaped(name(ratio[3]))}`;
      if (values.length > 1) html += ` (rounds ${times(ratio[1])} to ${times(ratio[2])})`;
      if (ratio[1] < 1 && ratio[2] > 1) html += '; ◇ the rounds disagree';
    }
    if (versus !== null) html += `<br>${escaped(name(view.subject))} is ${times(versus)} as good here`;
    return html;
  }

  function place(x, y) {
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
  }
  const hide = () => { tip.hidden = true; };

  const grid = $('.grid');
  const cells = rows.map(([, cells]) => cells);
  grid.setAttribute('role', 'grid');
  function cellOf(target) {
    const td = target.closest && target.closest('.grid tr[data-c] td');
    return td && [Number(td.parentElement.dataset.c), view.columns[td.cellIndex - 1], td];
  }
  function tell(event, x, y) {
    const at = cellOf(event.target);
    if (!at) return hide();
    tip.innerHTML = details(at[0], at[1]);
    place(x, y);
  }
  grid.addEventListener('pointermove', e => tell(e, e.clientX, e.clientY));
  grid.addEventListener('click', e => tell(e, e.clientX, e.clientY));
  grid.addEventListener('pointerleave', hide);
  grid.addEventListener('focusin', e => {
    const box = e.target.getBoundingClientRect();
    tell(e, box.left, box.bottom - 14);
  });
  grid.addEventListener('focusout', hide);
  addEventListener('scroll', hide, { passive: true, capture: true });
  // One cell is in the order of tabs; arrows move from cell to cell.
  cells.flat().forEach((td, i) => { td.tabIndex = i ? -1 : 0; });
  grid.addEventListener('keydown', e => {
    if (e.key === 'Escape') return hide();
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[e.key];
    const row = cells.findIndex(row => row.includes(e.target));
    if (!step || row < 0) return;
    const to = cells[row + step[0]]?.[cells[row].indexOf(e.target) + step[1]];
    if (!to) return;
    e.preventDefault();
    e.target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });

  // ---- charts -----------------------------------------------------------------------------------------------
  const hidden = new Set();
  const charts = new Map();
  const styled = (element, variable) => getComputedStyle(element).getPropertyValue(variable).trim();
  const sample = document.createElement('i');
  sample.hidden = true;
  document.body.append(sample);
  function colour(e) {
    sample.className = `e${e}`;
    return styled(sample, '--c');
  }
  // Twelve colours; engines beyond them are dashed.
  const dash = e => (e >= 12 ? [6, 4] : undefined);

  // Names every visible engine's value at the cursor.
  function reader(format, at) {
    return {
      hooks: {
        setCursor: u => {
          const { idx, left, top } = u.cursor;
          if (idx === null || idx === undefined || left < 0) return hide();
          const lines = u.series
            .map((s, i) => [s, u.data[i][idx]])
            .filter(([s, v], i) => i && s.show && v !== null && v !== undefined)
            .sort((a, b) => b[1] - a[1])
            .map(([s, v]) => `<tr><td><i class="e${s.engine}"></i>${escaped(s.label)}</td><td>${format(v)}</td></tr>`);
          if (!lines.length) return hide();
          tip.innerHTML = `<b>${at(u.data[0][idx], idx)}</b><table>${lines.join('')}</table>`;
          const box = u.over.getBoundingClientRect();
          place(box.left + left, box.top + top);
        },
      },
    };
  }

  function axes(theme, x, y) {
    const axis = { stroke: theme.soft, font: theme.font, grid: { stroke: theme.rule, width: 1 }, ticks: { show: false } };
    return [{ ...axis, size: 34, ...x }, { ...axis, size: 62, ...y }];
  }

  function series(engines, extra) {
    return [{}, ...engines.map(e => ({
      label: name(e), engine: e, stroke: colour(e), width: e === view.subject ? 2.6 : 1.5, dash: dash(e),
      show: !hidden.has(e), spanGaps: true, points: { show: false }, ...extra,
    }))];
  }

  const NINES = [[0.5, '50 %'], [0.9, '90'], [0.99, '99'], [0.999, '99.9'], [0.9999, '99.99'], [0.99999, '99.999']];
  const nines = q => -Math.log10(1 - q);

  const decades = (min, max) => {
    const powers = [];
    for (let power = Math.ceil(Math.log10(min) - 1e-9); power <= Math.log10(max) + 1e-9; power++) powers.push(10 ** power);
    return powers;
  };
  const decade = ns => (ns >= 1e9 ? `${ns / 1e9} s` : ns >= 1e6 ? `${ns / 1e6} ms` : ns >= 1e3 ? `${ns / 1e3} µs` : `${ns} ns`);

  function curve(c, theme) {
    const found = view.cases[c].curves;
    const engines = view.columns.filter(e => found[e] && !view.engines[e].null);
    // The maximum stands right of the last percentile that any engine has.
    const last = view.quantiles.length - 1;
    const used = view.quantiles.map((_, i) => i).filter(i => engines.some(e => found[e][i] !== null));
    const end = nines(view.quantiles[used.filter(i => i < last).pop() ?? 0]);
    const right = end + Math.max(0.35, end / 8);
    const xs = used.map(i => (i === last ? right : nines(view.quantiles[i])));
    const named = new Map(NINES.filter(([q]) => nines(q) <= end + 1e-9).map(([q, words]) => [nines(q), words]));
    named.set(right, 'max');
    return {
      label: `Latency percentiles of ${engines.map(name).join(', ')}`,
      data: [xs, ...engines.map(e => used.map(i => found[e][i]))],
      options: {
        series: series(engines),
        scales: { x: { time: false, range: [0, right] }, y: { distr: 3 } },
        axes: axes(theme,
          { splits: () => [...named.keys()], values: (_, ticks) => ticks.map(t => named.get(t)), grid: { stroke: theme.rule } },
          { splits: (_, __, min, max) => decades(min, max), values: (_, ticks) => ticks.map(decade) }),
        plugins: [reader(time, (_, i) => (used[i] === last ? 'the longest' : `${+(view.quantiles[used[i]] * 100).toFixed(4)} % took no longer than`))],
      },
    };
  }

  function overTime(c, theme) {
    const found = view.cases[c].time;
    const engines = view.columns.filter(e => found[e] && !view.engines[e].null);
    if (!engines.length) return null;
    const data = engines.length === 1
      ? [found[engines[0]].map(p => p[0]), found[engines[0]].map(p => p[1])]
      : uPlot.join(engines.map(e => [found[e].map(p => p[0]), found[e].map(p => p[1])]));
    return {
      label: `Throughput over time of ${engines.map(name).join(', ')}`,
      data,
      options: {
        // A point stands at the end of its second.
        series: series(engines, { paths: uPlot.paths.stepped({ align: -1 }) }),
        scales: { x: { time: false, range: (_, min, max) => [0, max] }, y: { range: (_, min, max) => [0, (max || 1) * 1.05] } },
        axes: axes(theme, { values: (_, ticks) => ticks.map(t => `${t} s`) }, { values: (_, ticks) => ticks.map(t => (t ? show.rate(t) : '0')) }),
        plugins: [reader(show.rate, t => `${t.toFixed(1)} s`)],
      },
    };
  }

  function scale(f, theme) {
    const { points, axis } = view.families[f];
    const cell = (e, c) => view.cases[c].cells[0][e];
    const engines = view.columns.filter(e => !view.engines[e].null && points.some(([, c]) => cell(e, c)));
    const median = (e, c) => {
      const v = cell(e, c)?.[0];
      if (!v) return null;
      const s = [...v].sort((a, b) => a - b);
      return s.length % 2 ? s[s.length >> 1] : (s[s.length / 2 - 1] + s[s.length / 2]) / 2;
    };
    // Whiskers from the worst round to the best.
    const whiskers = {
      hooks: {
        draw: u => {
          u.ctx.save();
          u.series.forEach((s, i) => {
            if (!i || !s.show) return;
            u.ctx.strokeStyle = colour(s.engine);
            u.ctx.lineWidth = 1.2 * devicePixelRatio;
            points.forEach(([, c], x) => {
              const values = cell(s.engine, c)?.[0];
              if (!values || values.length < 2) return;
              const at = u.valToPos(x, 'x', true);
              u.ctx.beginPath();
              u.ctx.moveTo(at, u.valToPos(Math.min(...values), 'y', true));
              u.ctx.lineTo(at, u.valToPos(Math.max(...values), 'y', true));
              u.ctx.stroke();
            });
          });
          u.ctx.restore();
        },
      },
    };
    const top = Math.max(...engines.flatMap(e => points.flatMap(([, c]) => cell(e, c)?.[0] || [])));
    return {
      label: `Throughput by ${axis} of ${engines.map(name).join(', ')}`,
      data: [points.map((_, i) => i), ...engines.map(e => points.map(([, c]) => median(e, c)))],
      options: {
        // A case without a figure breaks the line.
        series: series(engines, { spanGaps: false }).map(s => (s.stroke ? { ...s, points: { show: true, size: 6, fill: s.stroke } } : s)),
        scales: { x: { time: false, range: [-0.2, points.length - 0.8] }, y: { range: () => [0, top * 1.05 || 1] } },
        axes: axes(theme,
          { splits: () => points.map((_, i) => i), values: () => points.map(([x]) => x.toLocaleString('en')), label: axis, labelFont: theme.font, labelSize: 18 },
          { values: (_, ticks) => ticks.map(t => (t ? show.rate(t) : '0')) }),
        plugins: [reader(show.rate, (_, i) => `${points[i][0].toLocaleString('en')} ${axis}`), whiskers],
      },
    };
  }

  // As tall as the bars beside it, within reason.
  const height = plot => Math.min(420, Math.max(250, plot.clientHeight));
  const kinds = { curve, time: overTime, scale };
  function draw(figure) {
    const plot = $('.plot', figure);
    charts.get(figure)?.destroy();
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const theme = { soft: styled(root, '--soft'), rule: styled(root, '--rule'), font };
    const chart = kinds[figure.dataset.chart](Number(figure.dataset.c), theme);
    if (!chart) {
      plot.textContent = 'Too short for a series.';
      plot.style.minHeight = '0';
      charts.delete(figure);
      return;
    }
    const options = { width: plot.clientWidth, height: height(plot), legend: { show: false }, cursor: { y: false, points: { size: 6 } }, ...chart.options };
    const made = new uPlot(options, chart.data, plot);
    const canvas = $('canvas', plot);
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `${chart.label}; the same figures are in the table below`);
    charts.set(figure, made);
  }
  const figures = all('figure.chart');
  // Charts are drawn when they come near the window: a long run has a hundred.
  const near = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && !charts.has(target)) draw(target);
    }
  }, { rootMargin: '400px' });
  const resized = new ResizeObserver(entries => {
    for (const { target } of entries) {
      const chart = charts.get(target.parentElement);
      if (chart && target.clientWidth && chart.width !== target.clientWidth) chart.setSize({ width: target.clientWidth, height: height(target) });
    }
  });
  for (const figure of figures) {
    near.observe(figure);
    resized.observe($('.plot', figure));
    figure.addEventListener('pointerleave', hide);
  }
  const redraw = () => { for (const figure of [...charts.keys()]) draw(figure); };

  // ---- engines on and off -------------------------------------------------------------------------------------
  for (const chip of all('.chip')) {
    const e = Number(chip.dataset.e);
    if (e >= 12) chip.classList.add('dashed');
    if (view.engines[e].null) {
      chip.remove();
      continue;
    }
    chip.addEventListener('click', () => {
      const on = hidden.has(e);
      on ? hidden.delete(e) : hidden.add(e);
      chip.setAttribute('aria-pressed', String(on));
      for (const chart of charts.values()) {
        chart.series.forEach((s, i) => { if (i && s.engine === e) chart.setSeries(i, { show: on }); });
      }
      all(`.bars li[data-e="${e}"]`).forEach(li => li.classList.toggle('off', !on));
    });
  }

  // ---- colours ------------------------------------------------------------------------------------------------
  const toggle = $('#theme');
  const THEMES = ['auto', 'light', 'dark'];
  const kept = {
    get: () => { try { return localStorage.getItem('halobench-colours'); } catch { return null; } },
    set: value => { try { localStorage.setItem('halobench-colours', value); } catch { /* a private window */ } },
  };
  function wear(theme) {
    if (theme === 'auto') delete root.dataset.theme;
    else root.dataset.theme = theme;
    toggle.textContent = `Colours: ${theme}`;
    toggle.setAttribute('aria-label', `Colours: ${theme === 'auto' ? 'as the system' : theme}; change`);
    toggle.value = theme;
    redraw();
  }
  wear(THEMES.includes(kept.get()) ? kept.get() : 'auto');
  toggle.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(toggle.value) + 1) % THEMES.length];
    kept.set(next);
    wear(next);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  // ---- paper, and the data --------------------------------------------------------------------------------------
  addEventListener('beforeprint', () => {
    all('details').forEach(d => { d.open = true; });
    figures.filter(f => !charts.has(f)).forEach(draw);
  });
  $('#download').addEventListener('click', () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([$('#result').textContent], { type: 'application/json' }));
    link.download = 'result.json';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
