package program

// FilmClock is a script that defines film(ms). From the first call on, the page's clock advances only during film.
const FilmClock = `{
	const [ask, now] = [window.requestAnimationFrame.bind(window), performance.now.bind(performance)];
	let [at, queue] = [0, []];
	window.requestAnimationFrame = (act) => (at ? queue.push(act) : ask(act));
	performance.now = () => at || now();
	window.film = async (ms) => {
		at ||= now();
		for (const end = at + ms; at < end - 1; ) {
			at += 1000 / 60;
			for (const act of queue.splice(0)) act(at);
			await null;
		}
		return true;
	};
}`
