package viz

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"listwatch/viz/reply"
	"listwatch/viz/stage"
)

// rooms holds the scripts, styles and pictures of all rooms, each below its own name. What stands in for the program in
// an export is no room.
//
//go:embed */*.js */*.css */*.svg
var rooms embed.FS

// mediaTypes by file extension. Not the mime package's: on some systems that asks the desktop, which may not know
// that .js is a script, and with nosniff a browser then refuses it.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// readAsset returns an embedded file by "ROOM/NAME".
func readAsset(name string) ([]byte, error) {
	switch {
	case name == "stage/tall.css":
		return stage.TallStyle(), nil
	case strings.HasPrefix(name, "export/"):
		return nil, fs.ErrNotExist
	}
	return rooms.ReadFile(name)
}

// serveAsset answers GET /viz/assets/ROOM/NAME, also conditionally: with an ETag of the content.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	body, err := readAsset(name)
	if err != nil {
		reply.Error(w, r, http.StatusNotFound, "no such asset")
		return
	}
	sum := sha256.Sum256(body)
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	w.Header().Set("Cache-Control", "no-cache") // may be kept, but is asked for again: the binary may be a new one
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
