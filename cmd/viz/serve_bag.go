package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	bagStart = "START.html"
	// bagHeaders is how long a client may take for its headers. A file may take as long as it does: there are thirty of them on one access point.
	bagHeaders = 10 * time.Second
	bagIdle    = time.Minute // for a connection without a request: a page's next click still finds it open
)

// serveBag hands out the files of a bag, which cmd/bag makes, and nothing else of this computer, until ctx is done.
func serveBag(ctx context.Context, name, listen string, stdout io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	handler, err := newBag(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: bagHeaders, IdleTimeout: bagIdle}
	served := make(chan error, 1) // sent once, by the goroutine, when Serve returns: at the latest when the server is closed
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "handing out %s on http://%s/\n", name, listener.Addr())
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
		err = server.Close() // who is not done asks for the rest another time
		<-served
		return err
	}
}

// bag is the files of an archive by their names. They are looked up, never opened by a path.
type bag struct {
	file  io.ReaderAt
	files map[string]*zip.File
}

func newBag(file *os.File) (*bag, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	reader, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, err
	}
	b := &bag{file: file, files: map[string]*zip.File{}}
	for _, each := range reader.File {
		if each.Method != zip.Store {
			return nil, errors.New("this is no bag: make bag writes one")
		}
		b.files[each.Name] = each
	}
	if b.files[bagStart] == nil {
		return nil, errors.New("this is no bag: it has no " + bagStart)
	}
	return b, nil
}

// ServeHTTP answers with one file, or a part of it.
func (b *bag) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = bagStart
	}
	file := b.files[name]
	if file == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a bag is only read", http.StatusMethodNotAllowed)
		return
	}
	offset, err := file.DataOffset()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	if !strings.HasPrefix(name, "site/") { // whose pages say it themselves
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	}
	header.Set("ETag", fmt.Sprintf(`"%08x"`, file.CRC32))
	http.ServeContent(w, r, name, time.Time{}, io.NewSectionReader(b.file, offset, int64(file.UncompressedSize64)))
}
