package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
)

// shownChunks is how many of the newest chunks of a stream the leaf shows, and shownData how much of the data of each.
const (
	shownChunks = 4
	shownData   = 420
)

// wireBytes is one stream as the page reads it.
type wireBytes struct {
	Watcher string
	Agent   string
	Request string      `json:"request"`
	Header  string      `json:"header"`
	Bytes   int64       `json:"bytes"`
	Count   int         `json:"count"`
	Chunks  []wireChunk `json:"chunks"`
	Frames  []wireFrame `json:"frames"`
}

// wireFrame is one frame of a websocket.
type wireFrame struct {
	Head   string `json:"head"`
	Opcode string `json:"opcode"`
	Data   string `json:"data"`
	Size   int    `json:"size"`
}

// Pieces is what the stream comes in.
func (s *wireBytes) Pieces() string {
	if len(s.Frames) > 0 || strings.HasPrefix(s.Header, "HTTP/1.1 101 ") {
		return "frames of a websocket"
	}
	return "chunks"
}

type wireChunk struct {
	SizeLine string `json:"sizeLine"`
	Data     string `json:"data"`
	Size     int    `json:"size"`
	End      string `json:"end"`
}

// partBytes shows the open watches of the client half as they are on the wire, this moment: of the part's watcher, or all.
func (i *Inspector) partBytes(ctx context.Context, p *part) (templ.Component, error) {
	if i.config.Streams == nil {
		return partBytesLeaf(p, nil, "Nothing is running: this page shows a log, and the log does not hold the bytes."), nil
	}
	var streams []wireBytes
	open, err := i.config.Streams(ctx)
	if err != nil {
		return nil, err
	}
	for _, stream := range open {
		if stream.Resource != p.Resource || p.Subject != "" && p.Station == probe.Watcher && p.Subject != stream.Watcher {
			continue
		}
		written, err := json.Marshal(stream.Wire)
		if err != nil {
			return nil, fmt.Errorf("write a stream: %w", err)
		}
		agent, _, _ := strings.Cut(stream.OpenedBy, " ")
		bytes := wireBytes{Watcher: stream.Watcher, Agent: agent}
		if err := json.Unmarshal(written, &bytes); err != nil {
			return nil, fmt.Errorf("read a stream: %w", err)
		}
		streams = append(streams, bytes)
	}
	why := ""
	if len(streams) == 0 {
		why = "No stream of this program's own clients. This page does not see the streams of other programs."
	}
	return partBytesLeaf(p, streams, why), nil
}

// Newest returns the chunks that are shown, oldest first.
func (s *wireBytes) Newest() []wireChunk {
	return s.Chunks[max(0, len(s.Chunks)-shownChunks):]
}

// NewestFrames returns the frames that are shown, oldest first.
func (s *wireBytes) NewestFrames() []wireFrame {
	return s.Frames[max(0, len(s.Frames)-shownChunks):]
}

// Shown returns the beginning of the data, and how many bytes are left out. What a close frame says begins with two bytes of status.
func (f *wireFrame) Shown() (data string, left int) {
	if f.Opcode == "close" && len(f.Data) >= 2 {
		return fmt.Sprintf("%d %s", int(f.Data[0])<<8|int(f.Data[1]), strings.ToValidUTF8(f.Data[2:], "")), 0
	}
	return (&wireChunk{Data: f.Data, Size: f.Size}).Shown()
}

// headerLines returns the lines of a header, without their ends and without the empty one that closes it.
func headerLines(header string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSuffix(header, "\r\n"), "\r\n"), "\r\n")
}

// Shown returns the beginning of the data, and how many bytes are left out.
func (c *wireChunk) Shown() (data string, left int) {
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

// Hex returns the size line without its line end.
func (c *wireChunk) Hex() string { return strings.TrimSpace(c.SizeLine) }
