package viz

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

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
	".png": "image/png",
}

// assets serves the embedded files with an ETag of their content. Immutable.
type assets struct {
	files map[string]asset // by "ROOM/NAME"
}

type asset struct {
	body      []byte
	mediaType string
	etag      string
}

func newAssets() *assets {
	a := &assets{files: map[string]asset{}}
	err := fs.WalkDir(rooms, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "export/") {
			return err
		}
		body, err := rooms.ReadFile(name)
		a.add(name, body)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("viz: embedded files: %v", err))
	}
	a.add("stage/tall.css", stage.TallStyle())
	return a
}

func (a *assets) add(name string, body []byte) {
	sum := sha256.Sum256(body)
	a.files[name] = asset{body, mediaTypes[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// serve answers GET /viz/assets/ROOM/NAME, also conditionally.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	file, ok := a.files[name]
	if !ok {
		writeStatus(w, r, http.StatusNotFound, "no such asset")
		return
	}
	w.Header().Set("Content-Type", file.mediaType)
	w.Header().Set("ETag", file.etag)
	w.Header().Set("Cache-Control", "no-cache") // may be kept, but is asked for again: the binary may be a new one
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.body))
}
