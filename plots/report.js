(function () {
  'use strict';
  var root = document.documentElement;

  /* light or dark: as the system says, until the reader chooses */
  var dark = window.matchMedia('(prefers-color-scheme: dark)');
  var button = document.createElement('button');
  button.type = 'button';
  button.className = 'theme';
  function isDark() { return root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches; }
  function tell() { button.textContent = isDark() ? 'Light' : 'Dark'; button.setAttribute('aria-label', 'Show the page ' + (isDark() ? 'light' : 'dark')); }
  try { var kept = localStorage.getItem('foldline-theme'); if (kept === 'dark' || kept === 'light') root.dataset.theme = kept; } catch (e) { /* not kept */ }
  button.addEventListener('click', function () {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('foldline-theme', root.dataset.theme); } catch (e) { /* not kept */ }
    tell();
  });
  dark.addEventListener('change', tell);
  tell();
  document.querySelector('header').appendChild(button);

  /* tables */
  function value(row, column) {
    var cell = row.cells[column];
    if (!cell) return '';
    if (!('v' in cell.dataset)) return cell.textContent.trim().toLowerCase();
    return cell.dataset.v === '' ? NaN : Number(cell.dataset.v);
  }
  function sort(table, column, down) {
    var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows);
    rows.forEach(function (r, i) { r.order = i; });
    rows.sort(function (a, b) {
      var x = value(a, column), y = value(b, column), way = down ? -1 : 1;
      var nx = x !== x, ny = y !== y; /* n/a stays at the end */
      if (nx || ny) return nx - ny || a.order - b.order;
      var c = typeof x === 'string' || typeof y === 'string' ? String(x).localeCompare(String(y), undefined, { numeric: true }) : x - y;
      return c * way || a.order - b.order;
    });
    rows.forEach(function (r) { body.appendChild(r); });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (th, i) {
      if (i === column) th.setAttribute('aria-sort', down ? 'descending' : 'ascending'); else th.removeAttribute('aria-sort');
    });
  }
  document.querySelectorAll('table.sortable').forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (th, column) {
      var b = document.createElement('button');
      b.type = 'button';
      b.textContent = th.textContent;
      th.textContent = '';
      th.appendChild(b);
      b.addEventListener('click', function () {
        var now = th.getAttribute('aria-sort');
        var numbers = table.tBodies[0].rows.length && 'v' in table.tBodies[0].rows[0].cells[column].dataset;
        sort(table, column, now ? now === 'ascending' : !!numbers);
      });
    });
    if (table.tBodies[0].rows.length > 25) {
      var label = document.createElement('label'), input = document.createElement('input');
      label.className = 'filter';
      label.textContent = 'Rows with';
      input.type = 'search';
      label.appendChild(input);
      table.parentNode.parentNode.insertBefore(label, table.parentNode);
      input.addEventListener('input', function () {
        var want = input.value.toLowerCase();
        Array.prototype.forEach.call(table.tBodies[0].rows, function (r) { r.hidden = r.textContent.toLowerCase().indexOf(want) < 0; });
      });
    }
  });

  /* ?sort=TABLE,COLUMN[,up] and ?theme=dark|light: a view that can be linked to */
  var query = new URLSearchParams(location.search);
  query.getAll('sort').forEach(function (text) {
    var part = text.split(','), table = document.getElementById(part[0]);
    if (table) sort(table, Number(part[1]), part[2] !== 'up');
  });
  var theme = query.get('theme');
  if (theme === 'dark' || theme === 'light') { root.dataset.theme = theme; tell(); }

  /* paper shows everything */
  window.addEventListener('beforeprint', function () { document.querySelectorAll('details').forEach(function (d) { d.open = true; }); });
})();
