// Tables: sort by a head, filter rows, save as CSV with full precision.
"use strict";
(() => {
  const cellValue = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    if (value === undefined) return cell.textContent.trim();
    return value === "" ? null : Number(value);
  };

  for (const table of document.querySelectorAll("table.stacked")) { // on a phone the heads are out of sight
    const titles = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
    for (const row of table.tBodies[0].rows) {
      for (const cell of row.cells) if (cell.tagName === "TD") cell.dataset.title = titles[cell.cellIndex];
    }
  }

  function compare(first, second) {
    if (first === null || second === null) return (first === null) - (second === null);
    if (typeof first === "number" && typeof second === "number") return first - second;
    return String(first).localeCompare(String(second), undefined, { numeric: true });
  }

  function sort(table, column) {
    const heads = [...table.tHead.rows[0].cells];
    const head = heads[column];
    const rows = [...table.tBodies[0].rows];
    const isNumber = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    const isDown = before === null ? isNumber : before === "ascending"; // numbers: the largest first
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    const keyed = rows.map((row) => [cellValue(row, column), row]);
    keyed.sort(([first], [second]) => {
      if (first === null || second === null) return compare(first, second); // what is missing stays last
      return isDown ? compare(second, first) : compare(first, second);
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  }

  function toCsv(table) {
    const quoted = (value) => {
      let text = value === null ? "" : String(value);
      if (typeof value !== "number" && /^[=+\-@\t\r\n＝＋－＠]/.test(text)) text = `'${text}`; // no formula in a spreadsheet
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const columns = heads.map((_, index) => index).filter((index) => heads[index] !== "");
    const lines = [columns.map((index) => quoted(heads[index]))];
    for (const row of table.tBodies[0].rows) lines.push(columns.map((index) => quoted(cellValue(row, index))));
    return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
  }

  for (const part of document.querySelectorAll("[data-table]")) {
    const table = part.querySelector("table");
    part.addEventListener("click", (event) => {
      const head = event.target.closest("[data-sort]");
      if (head) sort(table, Number(head.dataset.sort));
      if (event.target.closest("[data-export]")) {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([toCsv(table)], { type: "text/csv" }));
        link.download = part.dataset.csv;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      }
    });
    part.addEventListener("input", (event) => {
      if (!event.target.matches("[data-filter]")) return;
      const wanted = event.target.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }

  const idle = document.getElementById("with-idle");
  if (idle) idle.addEventListener("change", () => idle.closest("section").classList.toggle("with-idle", idle.checked));
})();
