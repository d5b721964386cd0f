# size.awk counts lines by room and kind, for make size. A line of over 120 columns counts as the lines it would fill.
FNR == 1 {
	n = split(FILENAME, part, "/")
	room = part[1]
	if (n == 1) room = "top"
	if (room == "internal") room = room "/" part[2]
	kind = FILENAME
	sub(/.*\./, "", kind)
	if (kind == "go" && FILENAME ~ /_test\.go$/) kind = "go test"
	if (FILENAME ~ /\.d\.ts$/) kind = "types"
	if (kind !~ /^(types|go|go test|templ|js|css|txtar|md|dlv|awk|sh|yaml|yml|json|mod)$/) kind = "other"
}
{
	line = $0
	gsub(/\t/, "    ", line)
	if (FILENAME ~ /\.js$/) { # types in comments are counted separately
		if (line ~ /^ *\/\*\*/) jsdoc = 1
		kind = jsdoc ? "js types" : "js"
		if (line ~ /\*\/ *$/) jsdoc = 0
	}
	lines[room, kind] += 1 + int((length(line) - 1) / 120) * (length(line) > 120)
	sum[kind] += 1 + int((length(line) - 1) / 120) * (length(line) > 120)
}
END {
	for (key in lines) {
		split(key, both, SUBSEP)
		printf "%-24s %-8s %7d\n", both[1], both[2], lines[key]
	}
	for (kind in sum) printf "%-24s %-8s %7d\n", "~ together", kind, sum[kind]
}
