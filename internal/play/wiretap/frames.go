package wiretap

import (
	"fmt"
	"slices"
	"strings"
)

// Frame is one frame of a websocket as it was on the wire, with at most 1 KiB of its data. What a server sends is not
// masked:
//
//	81 7e 01 a4                             final text frame; 7e: the next two bytes are the length
//	{"type":"ADDED","object":{…}}\n         so many bytes
type Frame struct {
	Head   string `json:"head"`   // in hexadecimal, byte by byte
	Opcode string `json:"opcode"` // "text", "close", …
	Data   string `json:"data"`   // its beginning, if it is long
	Size   int    `json:"size"`   // of all its data, in bytes
}

// opcodes are the meanings of the low four bits of a frame's first byte.
var opcodes = map[byte]string{0: "continuation", 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}

// The low seven bits of a frame's second byte are its length, or say where that is.
const (
	lengthBits = 0x7f
	lengthIn16 = 126 // two more bytes say the length
	lengthIn64 = 127 // eight more bytes do
	maxSize    = 1 << 31
)

// upgraded reports whether the header of an answer turns the connection into a websocket.
func upgraded(header string) bool {
	return strings.HasPrefix(header, "HTTP/1.1 101 ") && strings.Contains(strings.ToLower(header), "upgrade: websocket\r\n")
}

// headLength returns how long the head of a frame is, as far as its first bytes tell.
func headLength(head []byte) int {
	if len(head) < 2 {
		return 2
	}
	switch head[1] & lengthBits {
	case lengthIn16:
		return 4
	case lengthIn64:
		return 10
	}
	return 2
}

// readHead looks at what has come of the head of a frame, and begins the frame if it is complete.
func (s *parser) readHead() {
	if len(s.line) < headLength(s.line) {
		return
	}
	size := uint64(s.line[1] & lengthBits)
	if size >= lengthIn16 {
		size = 0
		for _, b := range s.line[2:] {
			size = size<<8 | uint64(b)
		}
	}
	if size >= maxSize || s.line[1] > lengthBits { // a server must not mask
		s.line, s.state = nil, done
		return
	}
	s.Count++
	if len(s.Frames) == maxChunks {
		s.Frames = slices.Delete(s.Frames, 0, 1)
	}
	s.Frames = append(s.Frames, Frame{Head: fmt.Sprintf("% x", s.line), Opcode: opcodes[s.line[0]&0x0f], Size: int(size)})
	s.line, s.left = nil, int(size)
	if size > 0 {
		s.state = inFrameData
	}
}
