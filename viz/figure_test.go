package viz

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/chapters"
	"listwatch/internal/book"
	"listwatch/internal/probe"
	"listwatch/internal/takes"
)

// TestEveryChapterHasItsMiniStage holds that the steps of the figures are moments of their recordings, and that there are
// enough of them to scroll through.
func TestEveryChapterHasItsMiniStage(t *testing.T) {
	b, err := book.New(chapters.FS())
	if err != nil {
		t.Fatal(err)
	}
	for _, chapter := range b.Chapters {
		f, err := newFigure(chapter)
		if err != nil {
			t.Fatal(err)
		}
		if f == nil || len(f.Steps) < 3 {
			t.Errorf("%s has no figure, or one that hardly moves: %+v", chapter.Folder, f)
			continue
		}
		_, records, err := f.Take.Load()
		if err != nil {
			t.Fatal(err)
		}
		first := records[0].Seq
		for _, s := range f.Steps {
			r := records[s.Seq-first]
			if r.Seq != s.Seq || r.Point.String() != s.Point || r.Sentence() != s.Says {
				t.Errorf("%s: step %+v is record %+v", chapter.Folder, s, r)
			}
		}
		var out strings.Builder
		if err := momentFigure(f).Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), `class="wall`); n < 2 {
			t.Errorf("%s: the key moment shows %d queues", chapter.Folder, n)
		}
	}
}

func TestTheKeyMomentIsATruePicture(t *testing.T) {
	b, err := book.New(chapters.FS())
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFigure(b.Chapter("06-cacher"))
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, q := range f.queues() {
		if q.Cap > 0 && q.Len == q.Cap {
			full++
		}
	}
	if f.Steps[f.Key].Point != "DispatchBlocked" || full == 0 {
		t.Errorf("the key moment of the cacher is %+v with %d full queues", f.Steps[f.Key], full)
	}
}

func TestARecordingIsServedAndShownInAFrameOfOurs(t *testing.T) {
	ui := New(Config{Log: probe.NewLog(clock.RealClock{}, 8)})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		ui.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w
	}
	life, _ := takes.Find("life")
	if got := get("/viz/takes/life"); got.Code != http.StatusOK || got.Body.String() != string(life.File()) {
		t.Errorf("/viz/takes/life: %d with %d bytes", got.Code, got.Body.Len())
	}
	if got := get("/viz/takes/none"); got.Code != http.StatusNotFound {
		t.Errorf("/viz/takes/none: %d", got.Code)
	}
	tests := []struct {
		path, take, frame string
		figure            bool
	}{
		{"/", "", "DENY", false},
		{"/?take=life", "life", "DENY", false},
		{"/?take=none", "", "DENY", false},
		{"/?figure=1&take=life", "life", "SAMEORIGIN", true},
	}
	for _, test := range tests {
		w := get(test.path)
		if got := w.Header().Get("X-Frame-Options"); got != test.frame {
			t.Errorf("%s: X-Frame-Options %q, want %q", test.path, got, test.frame)
		}
		if own := strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'self'"); own != test.figure {
			t.Errorf("%s: %s", test.path, w.Header().Get("Content-Security-Policy"))
		}
		body := regexp.MustCompile(`<body[^>]*>`).FindString(w.Body.String())
		if !strings.Contains(body, `data-take="`+test.take+`"`) || strings.Contains(body, `class="figure"`) != test.figure {
			t.Errorf("%s: %s", test.path, body)
		}
	}
}
