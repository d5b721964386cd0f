package inspector

import (
	"context"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// shownPieces is how many of the newest chunks or frames of a stream the leaf shows, and shownData how much of the data of
// each.
const (
	shownPieces = 4
	shownData   = 420
)

// partBytes shows the open watches of the client half as they are on the wire, this moment: of the part's watcher, or all.
func (i *Inspector) partBytes(ctx context.Context, p *part) (templ.Component, error) {
	if i.config.Streams == nil {
		return partBytesLeaf(p, nil, "Nothing is running: this page shows a log, and the log does not hold the bytes."), nil
	}
	open, err := i.config.Streams(ctx)
	if err != nil {
		return nil, err
	}
	var streams []Stream
	for _, stream := range open {
		if stream.Resource == p.Resource && (p.Subject == "" || p.Station != probe.Watcher || p.Subject == stream.Watcher) {
			streams = append(streams, stream)
		}
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

// pieces is what the stream comes in.
func (s *Stream) pieces() string {
	if len(s.Wire.Frames) > 0 || strings.HasPrefix(s.Wire.Header, "HTTP/1.1 101 ") {
		return "frames of a websocket"
	}
	return "chunks"
}

// newest returns the pieces that are shown, oldest first.
func newest[T any](pieces []T) []T { return pieces[max(0, len(pieces)-shownPieces):] }

// headerLines returns the lines of a header, without their ends and without the empty one that closes it.
func headerLines(header string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSuffix(header, "\r\n"), "\r\n"), "\r\n")
}

// shownOf returns the beginning of the data of a frame, and how many bytes are left out. What a close frame says begins with
// two bytes of status.
func shownOf(f wiretap.Frame) (data string, left int) {
	if f.Opcode == "close" && len(f.Data) >= 2 {
		return fmt.Sprintf("%d %s", int(f.Data[0])<<8|int(f.Data[1]), strings.ToValidUTF8(f.Data[2:], "")), 0
	}
	return shown(f.Data, f.Size)
}

// shown returns the beginning of data that has size bytes in all, and how many bytes are left out.
func shown(all string, size int) (data string, left int) {
	data = strings.TrimSuffix(all, "\n")
	if len(data) > shownData {
		data = strings.ToValidUTF8(data[:shownData], "")
	}
	left = size - len(data)
	if strings.HasSuffix(all, "\n") && left > 0 && len(data)+1 == len(all) {
		left-- // the line end is shown as a sign
	}
	return data, left
}
