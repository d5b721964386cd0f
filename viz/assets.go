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
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed assets
var assetFiles embed.FS

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
	files map[string]asset // by path below assets/
}

type asset struct {
	body      []byte
	mediaType string
	etag      string
}

func newAssets() *assets {
	a := &assets{files: map[string]asset{}}
	err := fs.WalkDir(assetFiles, "assets", a.add)
	if err != nil {
		panic(fmt.Sprintf("viz: embedded assets: %v", err))
	}
	return a
}

func (a *assets) add(name string, entry fs.DirEntry, err error) error {
	if err != nil || entry.IsDir() {
		return err
	}
	body, err := assetFiles.ReadFile(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	a.files[name[len("assets/"):]] = asset{
		body:      body,
		mediaType: mediaTypes[path.Ext(name)],
		etag:      `"` + hex.EncodeToString(sum[:8]) + `"`,
	}
	return nil
}

// serve answers GET /viz/assets/NAME, also conditionally.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	file, ok := a.files[name]
	if !ok {
		writeStatus(w, http.StatusNotFound, "no such asset")
		return
	}
	w.Header().Set("Content-Type", file.mediaType)
	w.Header().Set("ETag", file.etag)
	w.Header().Set("Cache-Control", "no-cache") // may be kept, but is asked for again: the binary may be a new one
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.body))
}
