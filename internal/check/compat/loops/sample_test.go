package loops

// sampler is a script that films the last records of a story's open beat. Each shape has one style for both themes.
const sampler = `(async () => {
	const frame = () => new Promise((done) => setTimeout(done));
	while (document.body?.dataset.rest !== "true") await frame();
	const [html, { player, stage: { scene, scenarios }, motion: { brush } }] = [document.documentElement, listwatch];
	const [{ root }, still] = [scene, new CSSStyleSheet()];
	still.replaceSync("* { transition: none !important; }"); // transitions have a clock of their own
	document.adoptedStyleSheets.push(still);
	const [styles, colours, bodies, ids] = [new Map(), new Map(), new Map(), new Map()];
	const number = (map, key) => map.get(key) ?? (map.set(key, map.size), map.size - 1);
	const round = (n) => Math.round(n * 100) / 100;
	const safe = (text) => text.replace(/[&<>"]/g, (c) => "&#" + c.charCodeAt() + ";");
	const both = (act) => ["light", "dark"].map((theme) => (html.dataset.theme = theme, act()));
	const styled = ["opacity", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "paint-order",
		"stroke-linejoin", "font-family", "font-size", "font-weight", "letter-spacing", "text-anchor"];
	const styleOf = (el, alpha, all = getComputedStyle(el)) => styled.map((name, i) => (i === 0 ? String(round(alpha))
		: all.getPropertyValue(name).replace("rgba(0, 0, 0, 0)", "none").replaceAll('"', "")));
	const usual = styleOf(root, 1);
	const css = (light, dark, known) => styled.map((name, i) => {
		const [day, night] = [light[i], dark[i]];
		const colour = day === night ? day : "var(--c" + number(colours, day + "|" + night) + ")";
		return known[i] === day && day === night ? "" : name + ":" + colour + ";";
	}).join("");
	const tag = (name, how, inner = "") => "<" + name + " " + how + ">" + inner + "</" + name + ">";
	let before = [0, 0]; // the place of the path's dot before
	const relative = (dot, end, x, y) => { // a thousand dots are shorter by a fifth
		const [left, top] = before;
		before = [x, y];
		return end ? "zm" + round(x - left) + " " + round(y - top) : dot;
	};
	const given = (el, but) => [...el.attributes].filter(({ name }) => !but.test(name)).map(({ name, value }) =>
		name + '="' + safe(value.replace(/(^|z)M(\S+) ([\d.]+)(?=h)/g, relative)) + '" ').join("");
	const dropped = /^(class|style|role|transform|visibility|tabindex|aria-.*|data-.*)$/;
	const turnOf = (turn) => tag("tspan", 'font-size="12"', turn);
	const wordsOf = (node) => (node.nodeType === 3 ? safe(node.data) : turnOf(node.textContent));
	const leaf = (el, [light, dark], how) => tag(el.tagName,
		given(el, dropped) + how + 'class="s' + number(styles, css(light, dark, usual)) + '"',
		el.matches("text") ? [...el.childNodes].map(wordsOf).join("") : "");
	const shapes = "path, rect, circle, line, polygon, ellipse, text, use";
	const walk = (el, alpha, out) => { // lists the visible shapes below an element
		const { display, opacity, visibility } = getComputedStyle(el);
		if (display === "none" || el.matches("defs, title")) return out;
		const seen = alpha * Number(opacity);
		if (!el.matches(shapes)) for (const child of el.children) walk(child, seen, out);
		else if (visibility === "visible" && seen > 0.02) {
			const [a, b] = [el, root].map((each) => each.getBoundingClientRect());
			const near = a.right > b.left && a.left < b.right && a.bottom > b.top && a.top < b.bottom;
			if (near && a.width + a.height > 0) out.push([el, styleOf(el, seen)]);
		}
		return out;
	};
	const scenery = () => {
		const ground = root.getScreenCTM().inverse();
		const [light, dark] = both(() => walk(root, 1, []));
		return light.map(([el, style], i) => {
			const { a, b, c, d, e, f } = ground.multiply((el.matches("use") ? el.parentNode : el).getScreenCTM());
			const place = 'transform="matrix(' + [a, b, c, d, e, f].map(round).join(" ") + ')" ';
			return { id: "e" + number(ids, el), body: leaf(el, [style, dark[i][1]], place), x: 0, y: 0 };
		});
	};
	const defs = (el) => (el.matches(shapes) ? leaf(el, both(() => styleOf(el, 1)), "")
		: tag(el.tagName, given(el, /^class$/), [...el.children].map(defs).join("")));
	const signs = { bookmark: "M0 -6.3L5.6 0L0 6.3L-5.6 0Z", synthetic: "M5 0A5 5 0 1 1 -5 0A5 5 0 1 1 5 0Z" };
	const body = (side, wide, ink) => tag("rect", 'rx="12" x="' + side + '" y="' + side
		+ '" width="' + (wide - 2 * side) + '" height="' + (24 - 2 * side) + '" style="fill:var(--' + ink + ')"');
	let tokens = [];
	brush.clean = () => (brush.labels = tokens = []);
	brush.paintPill = ({ copy, label, shape, colour }, x, y, wide) => {
		const [, name, turn] = /^(.*?)(\d*)$/.exec(label);
		const sign = signs[shape] ?? root.querySelector("#token-" + shape + " .sign").getAttribute("d");
		tokens.push({ id: copy, x, y, body: body(0, round(wide), "panel") + body(2, round(wide), colour)
			+ tag("text", 'class="token" y="18" x="22"', safe(name) + turnOf(turn))
			+ tag("path", 'class="sign" transform="translate(12 12)" d="' + sign + '"') });
	};
	const named = (text) => tag("text", 'class="name" y="5"', safe(text));
	brush.write = (text, x, y) => tokens.push({ id: text + y, x, y, body: named(text) });
	let [stamp, drawn, frames, plays] = ["", [], [], true];
	const sample = async () => {
		await film(50);
		await frame();
		const now = root.outerHTML + root.parentNode.className;
		if (now !== stamp) [stamp, drawn] = [now, scenery()];
		frames.push([...drawn, ...tokens].map((item) => ({ ...item, body: number(bodies, item.body) })));
	};
	const { from, to } = scenarios.session.beatPlayer.range;
	await player.seek(Math.max(from, to - 45));
	await film(1000);
	for (let i = 0; i < 10; i++) await sample();
	player.playTo(to, { within: 3800 }).then(() => (plays = false));
	while (plays && frames.length < 240) await sample();
	for (let i = 0; i < 28; i++) await sample();
	const glyphs = [...root.querySelectorAll("defs")].map(defs).join("");
	const inks = ["bg", "panel", "ink", "on-token", "moving", "delivered", "anomaly", "stored", "waiting"];
	const known = both(() => inks.map((ink) => [ink, getComputedStyle(html).getPropertyValue("--" + ink)]));
	const [light, dark] = known.map((all, i) => ":root{" + [...all, ...[...colours].map(([pair, k]) =>
		["c" + k, pair.split("|")[i]])].map(([ink, value]) => "--" + ink + ":" + value + ";").join("") + "}");
	const view = ["x", "y", "w", "h"].map((side) => scene.view[side]);
	const style = light + "@media(prefers-color-scheme:dark){" + dark + "}"
		+ ".all{background:var(--bg);" + css(usual, usual, []) + "font-variant-numeric:tabular-nums}"
		+ ".gone{visibility:hidden}"
		+ ".token{fill:var(--on-token);font-size:15px;font-weight:600}"
		+ ".sign{fill:none;stroke:var(--on-token);stroke-width:2.2;stroke-linecap:round}"
		+ ".name{fill:var(--ink);stroke:var(--panel);font-weight:600;paint-order:stroke;stroke-width:4px}"
		+ [...styles].map(([rules, k]) => ".s" + k + "{" + rules + "}").join("");
	return { frames, bodies: [...bodies.keys()], style, defs: glyphs, view };
})()`
