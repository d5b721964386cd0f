package program

// FilmClock gives the page a clock that does not advance between two pictures, however long taking them may last.
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
