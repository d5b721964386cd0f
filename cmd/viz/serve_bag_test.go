package main

import (
	"archive/zip"
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeZip writes an archive with two files.
func writeZip(t *testing.T, first string, method uint16) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "bag.zip"))
	if err != nil {
		t.Fatal(err)
	}
	out := zip.NewWriter(file)
	for name, text := range map[string]string{first: "<p>begin here</p>", "modules/x/@v/v1.zip": "0123456789"} {
		entry, err := out.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(entry, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func TestABagIsHandedOutAndNothingElse(t *testing.T) {
	name := writeZip(t, "START.html", zip.Store)
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "secret"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"-serve-bag", name, "-listen", "127.0.0.1:0"}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), " on ")
	if err != nil || !found {
		t.Fatalf("got %q, %v", line, err)
	}
	ask := func(method, path, part string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(url, "/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Range", part)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	for _, each := range []struct {
		method, path, part string
		status             int
		text               string
	}{
		{"GET", "/", "", 200, "<p>begin here</p>"},
		{"GET", "/START.html", "", 200, "<p>begin here</p>"},
		{"GET", "/modules/x/@v/v1.zip", "", 200, "0123456789"},
		{"GET", "/modules/x/@v/v1.zip", "bytes=7-", 206, "789"},
		{"HEAD", "/modules/x/@v/v1.zip", "", 200, ""},
		{"GET", "/modules/", "", 404, "404 page not found\n"},
		{"GET", "/secret", "", 404, "404 page not found\n"},
		{"GET", "/../secret", "", 404, "404 page not found\n"},
		{"GET", "/%2e%2e/secret", "", 404, "404 page not found\n"},
		{"GET", "/api/v1/pods", "", 404, "404 page not found\n"},
		{"POST", "/START.html", "", 405, "a bag is only read\n"},
		{"DELETE", "/modules/x/@v/v1.zip", "", 405, "a bag is only read\n"},
	} {
		if code, text := ask(each.method, each.path, each.part); code != each.status || text != each.text {
			t.Errorf("%s %s: got %d %q, want %d %q", each.method, each.path, code, text, each.status, each.text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if got := <-status; got != exitOK {
		t.Errorf("status %d", got)
	}
}

func TestWhatIsNoBagIsNotHandedOut(t *testing.T) {
	for name, want := range map[string]string{
		writeZip(t, "START.html", zip.Deflate): "this is no bag: make bag writes one",
		writeZip(t, "index.html", zip.Store):   "this is no bag: it has no START.html",
		"serve_bag_test.go":                    "not a valid zip file",
		"gone":                                 "gone",
	} {
		var stderr strings.Builder
		if status := run(t.Context(), []string{"-serve-bag", name}, io.Discard, &stderr); status != exitError || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, %s", name, status, &stderr)
		}
	}
}

func TestTheVersionIsSaid(t *testing.T) {
	var out strings.Builder
	if status := run(t.Context(), []string{"-version"}, &out, io.Discard); status != exitOK || !strings.HasPrefix(out.String(), "listwatch devel, as Kubernetes v1.37.2, go1.") {
		t.Errorf("status %d, %q", status, &out)
	}
}
