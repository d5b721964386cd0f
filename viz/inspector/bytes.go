package inspector

import (
	"context"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// shownChunks is how many of the newest chunks of a stream the leaf shows, and shownData how much of the data of each.
const (
	shownChunks = 4
	shownData   = 420
)

// partBytes shows the open watches of the client half as they are on the wire, this moment: of the part's watcher, or
// all.
func (i *Inspector) partBytes(ctx context.Context, p *part) (templ.Component, error) {
	if i.Streams == nil {
		return partBytesLeaf(p, nil,
			"Nothing is running: this page shows a log, and the log does not hold the bytes."), nil
	}
	watcher := ""
	if p.Station == probe.Watcher {
		watcher = p.Subject
	}
	streams, err := i.Streams(ctx, p.Resource, watcher)
	if err != nil {
		return nil, err
	}
	why := ""
	if len(streams) == 0 {
		why = "No stream of this program's own clients. This page does not see the streams of other programs."
	}
	return partBytesLeaf(p, streams, why), nil
}

// agent is what the client of the stream calls itself.
func (s *Stream) agent() string {
	agent, _, _ := strings.Cut(s.OpenedBy, " ")
	return agent
}

// newest returns the chunks that are shown, oldest first.
func newest(chunks []wiretap.Chunk) []wiretap.Chunk { return chunks[max(0, len(chunks)-shownChunks):] }

// headerLines returns the lines of a header, without their ends and without the empty one that closes it.
func headerLines(header string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSuffix(header, "\r\n"), "\r\n"), "\r\n")
}

// shown returns the beginning of the data of a chunk, and how many bytes are left out.
func shown(c wiretap.Chunk) (data string, left int) {
	data = strings.TrimSuffix(c.Data, "\n")
	if len(data) > shownData {
		data = strings.ToValidUTF8(data[:shownData], "")
	}
	left = c.Size - len(data)
	if strings.HasSuffix(c.Data, "\n") && left > 0 && len(data)+1 == len(c.Data) {
		left-- // the line end is shown as a sign
	}
	return data, left
}
