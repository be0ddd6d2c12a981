// Search and zoom of a flame graph. Texts are only ever read from and written to text nodes.
"use strict";
(function () {
  var svg = document.documentElement;
  var inner = 1180, margin = 10, letter = 7;
  var byId = function (id) { return document.getElementById(id); };
  var frames = Array.prototype.slice.call(byId("frames").querySelectorAll("g"));
  var details = byId("details"), matched = byId("matched"), reset = byId("reset"), search = byId("search");
  var zoomed = { x: 0, w: 1 }, term = null;

  var boxes = frames.map(function (g) {
    return {
      g: g,
      rect: g.querySelector("rect"),
      text: g.querySelector("text"),
      title: g.querySelector("title").textContent,
      x: parseFloat(g.getAttribute("data-x")),
      w: parseFloat(g.getAttribute("data-w")),
      y: parseFloat(g.querySelector("rect").getAttribute("y")),
    };
  });
  boxes.forEach(function (box) {
    // The title is "text (time, share; own)": the label is the text.
    box.label = box.title.slice(0, box.title.lastIndexOf(" ("));
  });

  function draw(box, x, w) {
    box.rect.setAttribute("x", x);
    box.rect.setAttribute("width", w);
    box.text.setAttribute("x", x + 3);
    var letters = Math.floor((w - 6) / letter);
    box.text.textContent = letters < 3 ? "" :
      box.label.length <= letters ? box.label : box.label.slice(0, letters - 2) + "..";
  }

  function zoom(target) {
    var small = 1e-7;
    zoomed = target;
    boxes.forEach(function (box) {
      var around = box.x <= target.x + small && box.x + box.w >= target.x + target.w - small && (target.y === undefined || box.y < target.y);
      var within = box.x >= target.x - small && box.x + box.w <= target.x + target.w + small;
      var visible = around || (within && (target.y === undefined || box.y >= target.y));
      box.g.setAttribute("display", visible ? "inline" : "none");
      box.g.classList.toggle("parent", around && box !== target && target.w < 1);
      if (!visible) return;
      if (around) draw(box, margin, inner);
      else draw(box, margin + (box.x - target.x) / target.w * inner, box.w / target.w * inner);
    });
    reset.classList.toggle("hidden", target.w >= 1);
  }

  function find(text) {
    term = text;
    var pattern = null;
    if (text) {
      try { pattern = new RegExp(text, "i"); }
      catch (error) { pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"); }
    }
    var hits = [];
    boxes.forEach(function (box) {
      var hit = pattern !== null && pattern.test(box.label);
      box.g.classList.toggle("found", hit);
      if (hit) hits.push(box);
    });
    // Boxes within a box that matched count once.
    hits.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
    var share = 0, end = -1;
    hits.forEach(function (box) {
      if (box.x >= end - 1e-9) { share += box.w; end = box.x + box.w; }
    });
    matched.textContent = pattern === null ? " " : "Matched: " + (share * 100).toFixed(2) + " %";
    search.textContent = pattern === null ? "Search" : "Reset search";
  }

  function ask() {
    if (term) { find(null); return; }
    var text = window.prompt("Function, file or regular expression to look for:", "");
    if (text) find(text);
  }

  boxes.forEach(function (box) {
    box.g.addEventListener("click", function () { zoom(box.w >= 1 - 1e-9 ? { x: 0, w: 1 } : box); });
    box.g.addEventListener("mouseover", function () { details.textContent = box.title; });
    box.g.addEventListener("mouseout", function () { details.textContent = " "; });
  });
  reset.addEventListener("click", function () { zoom({ x: 0, w: 1 }); });
  search.addEventListener("click", ask);
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { find(null); zoom({ x: 0, w: 1 }); }
    if ((event.ctrlKey && event.key === "f") || event.key === "/") { event.preventDefault(); ask(); }
  });
})();
