package viz

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

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
	got := get("/viz/takes/none")
	assert.Equal(t, got.Code, http.StatusNotFound, "/viz/takes/none")
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
		got := w.Header().Get("X-Frame-Options")
		assert.Equal(t, got, test.frame, "%s: X-Frame-Options %q, want %q", test.path, got, test.frame)
		if own := strings.Contains(w.Header().Get("Content-Security-Policy"),
			"frame-ancestors 'self'"); own != test.figure {
			t.Errorf("%s: %s", test.path, w.Header().Get("Content-Security-Policy"))
		}
		body := regexp.MustCompile(`<body[^>]*>`).FindString(w.Body.String())
		if !strings.Contains(body, `data-take="`+test.take+`"`) || strings.Contains(body,
			`class="figure"`) != test.figure {
			t.Errorf("%s: %s", test.path, body)
		}
	}
}
