/* SPDX-License-Identifier: Apache-2.0 */
/* Zooms, searches and chooses; without it the page shows the same, one graph below the other. */
(function () {
    "use strict";
    var letter = 24; /* pixels below which a box has no text */

    function list(nodes) {
        return Array.prototype.slice.call(nodes);
    }

    function Graph(node) {
        var graph = this;
        this.node = node;
        this.zoomed = null;
        this.frames = list(node.querySelectorAll("svg.f")).map(function (frame) {
            return {
                node: frame,
                x: parseFloat(frame.getAttribute("x")),
                w: parseFloat(frame.getAttribute("width")),
                depth: Number(frame.getAttribute("data-d")),
                text: frame.querySelector("title").textContent
            };
        });
        this.frames.forEach(function (frame, i) {
            frame.node.setAttribute("tabindex", i === 0 ? "0" : "-1");
            frame.node.setAttribute("role", "button");
            frame.node.addEventListener("click", function () { graph.zoom(i); });
            frame.node.addEventListener("keydown", function (event) { graph.key(i, event); });
            ["mouseenter", "focus"].forEach(function (name) {
                frame.node.addEventListener(name, function () { graph.say(frame.text); });
            });
        });
    }

    Graph.prototype.say = function (text) {
        if (this.info)
            this.info.textContent = text.replace(/\n/g, " \u2014 ");
    };

    /* Give the boxes their places: all of the width is what the zoomed one has. */
    Graph.prototype.place = function () {
        var pixels = this.node.getBoundingClientRect().width;
        var from = this.zoomed ? this.zoomed.x : 0;
        var width = this.zoomed ? this.zoomed.w : 100;
        var depth = this.zoomed ? this.zoomed.depth : 0;
        this.frames.forEach(function (frame) {
            var x = (frame.x - from) * 100 / width;
            var w = frame.w * 100 / width;
            var above = frame.depth < depth && x <= 1e-4 && x + w >= 100 - 1e-4;
            var away = !above && (x < -1e-4 || x + w > 100 + 1e-4 || frame.depth < depth);
            frame.node.classList.toggle("above", above);
            frame.node.classList.toggle("away", away);
            frame.away = away;
            if (away)
                return;
            frame.node.setAttribute("x", (above ? 0 : x) + "%");
            frame.node.setAttribute("width", (above ? 100 : w) + "%");
            frame.node.classList.toggle("small", (above ? 100 : w) * pixels / 100 < letter);
        });
    };

    Graph.prototype.zoom = function (i) {
        this.zoomed = this.frames[i].w > 99.9999 ? null : this.frames[i];
        this.place();
        if (this.back)
            this.back.disabled = !this.zoomed;
    };

    Graph.prototype.reset = function () {
        this.zoomed = null;
        this.place();
        if (this.back)
            this.back.disabled = true;
    };

    /* The frame that an arrow leads to, or -1. */
    Graph.prototype.neighbour = function (i, key) {
        var frames = this.frames, depth = frames[i].depth, j;
        if (key === "ArrowDown") {
            for (j = i + 1; j < frames.length && frames[j].depth > depth; j++)
                if (frames[j].depth === depth + 1 && !frames[j].away)
                    return j;
        } else if (key === "ArrowUp") {
            for (j = i - 1; j >= 0; j--)
                if (frames[j].depth < depth)
                    return j;
        } else {
            var step = key === "ArrowRight" ? 1 : -1;
            for (j = i + step; j >= 0 && j < frames.length && frames[j].depth >= depth; j += step)
                if (frames[j].depth === depth && !frames[j].away)
                    return j;
        }
        return -1;
    };

    Graph.prototype.key = function (i, event) {
        if (event.key === "Enter" || event.key === " ") {
            this.zoom(i);
        } else if (event.key === "Escape") {
            this.reset();
        } else if (/^Arrow/.test(event.key)) {
            var j = this.neighbour(i, event.key);
            if (j >= 0) {
                this.frames[i].node.setAttribute("tabindex", "-1");
                this.frames[j].node.setAttribute("tabindex", "0");
                this.frames[j].node.focus();
            }
        } else {
            return;
        }
        event.preventDefault();
    };

    /* Mark what matches, and give its share: of nested ones the outer counts. */
    Graph.prototype.search = function (words) {
        var share = 0, under = Infinity, wanted = words.toLowerCase();
        this.frames.forEach(function (frame) {
            var name = frame.text.split("\n")[0].toLowerCase();
            var hit = wanted !== "" && name.indexOf(wanted) >= 0;
            frame.node.classList.toggle("hit", hit);
            if (frame.depth <= under)
                under = Infinity;
            if (hit && under === Infinity) {
                share += frame.w;
                under = frame.depth;
            }
        });
        return share;
    };

    var graphs = list(document.querySelectorAll("svg.graph")).map(function (node) {
        return new Graph(node);
    });
    var tools = document.querySelector(".tools");
    var sections = list(document.querySelectorAll("section"));
    var current = graphs[0];

    function choose() {
        var i = sections.map(function (section) { return "#" + section.id; }).indexOf(location.hash);
        i = i < 0 ? 0 : i;
        sections.forEach(function (section, j) { section.hidden = i !== j; });
        list(document.querySelectorAll("nav a")).forEach(function (link) {
            var chosen = link.getAttribute("href") === "#" + sections[i].id;
            link.setAttribute("aria-current", chosen);
            link.closest("tr").classList.toggle("chosen", chosen);
        });
        current = graphs[i];
        current.place();
        find();
    }

    function find() {
        var words = document.querySelector(".tools input").value;
        var share = current.search(words);
        document.querySelector(".found").textContent =
            words === "" ? "" : share.toFixed(1) + " % is in what matches";
        current.back.disabled = !current.zoomed;
    }

    if (tools) {
        graphs.forEach(function (graph) {
            graph.info = document.querySelector(".info");
            graph.back = tools.querySelector("button");
        });
        tools.hidden = false;
        tools.querySelector("input").addEventListener("input", find);
        tools.querySelector("button").addEventListener("click", function () { current.reset(); });
        window.addEventListener("hashchange", choose);
        choose();
    }
    window.addEventListener("resize", function () { current.place(); });
    if (!tools && current)
        current.place();
})();
