package viz

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/lab"
	"listwatch/internal/text/book"
)

var (
	hrefs = regexp.MustCompile(`<a[^>]* href="([^"]+)"`)
	ids   = regexp.MustCompile(` id="([^"]+)"`)
)

// TestEveryLinkOfTheBookLeadsSomewhere walks through the whole book, from its contents on, as a reader with much time:
// every page below /book/, every place in it that is linked to, and every link to the stage.
func TestEveryLinkOfTheBookLeadsSomewhere(t *testing.T) {
	w := walk{ui: New(Config{Log: probe.NewLog(clock.RealClock{}, 8), Book: NewBook()}),
		places: map[string]map[string]bool{}}
	w.read(book.Root)
	links := 0
	for len(w.todo) > 0 {
		page := w.todo[0]
		w.todo = w.todo[1:]
		for _, link := range page.links {
			links++
			if strings.HasPrefix(link, "https://") {
				continue
			}
			path, place, _ := strings.Cut(link, "#")
			if path == "" {
				path = page.path
			}
			if places := w.read(path); places == nil {
				t.Errorf("%s leads to %s, which is not there", page.path, link)
			} else if place != "" && strings.HasPrefix(path, book.Root) && !places[place] {
				t.Errorf("%s leads to %s: there is no such place", page.path, link)
			}
		}
	}
	assert.True(t, len(w.places) >= 100 && links >= 2000,
		"walked over %d pages and %d links: that is not the book", len(w.places), links)
}

// walk is on its way through the book.
type walk struct {
	ui     http.Handler
	places map[string]map[string]bool // by path: the places in the page; nil if it is not there
	todo   []walkPage                 // of the book, read and not looked through
}

type walkPage struct {
	path  string
	links []string
}

// read returns the places in a page, nil if there is none.
func (w *walk) read(path string) map[string]bool {
	if places, known := w.places[path]; known {
		return places
	}
	w.places[path] = nil
	answer := httptest.NewRecorder()
	w.ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	if answer.Code != http.StatusOK {
		return nil
	}
	body := answer.Body.String()
	places := map[string]bool{}
	for _, found := range ids.FindAllStringSubmatch(body, -1) {
		places[html.UnescapeString(found[1])] = true
	}
	w.places[path] = places
	if strings.HasPrefix(path, book.Root) {
		page := walkPage{path: path}
		for _, found := range hrefs.FindAllStringSubmatch(body, -1) {
			page.links = append(page.links, html.UnescapeString(found[1]))
		}
		w.todo = append(w.todo, page)
	}
	return places
}

func TestTheShelfListsEveryLab(t *testing.T) {
	log, _ := newLog()
	page := ask(New(Config{Log: log}), "GET", "/", "").Body.String()
	for _, each := range lab.All() {
		assert.True(t, strings.Contains(page, "go run ./cmd/lab start "+each.ID+"<"), "%s is not on the shelf", each.ID)
	}
	assert.False(t, strings.Contains(page, `id="lab"`),
		"the page names a lab though the program runs in no working copy")
}

func TestThePageOfAWorkingCopyNamesItsLabAndItsPromise(t *testing.T) {
	for id, promise := range map[string]string{
		"neighbours": "", "wrong-type": "Promise 5:", "build-pop": "<code>pop</code> always takes what comes in",
	} {
		here, err := lab.ByID(id)
		require.NoError(t, err)
		log, _ := newLog()
		ui := New(Config{Log: log, Lab: &here, LabState: func() (string, bool) { return "Not yet.", true }})
		if answer := ask(ui, "GET", "/viz/lab", ""); answer.Code != http.StatusOK ||
			strings.TrimSpace(answer.Body.String()) != `{"says":"Not yet.","broken":true}` {
			t.Errorf("the state: %d %s", answer.Code, answer.Body)
		}
		page := ask(ui, "GET", "/", "").Body.String()
		if bar, _, _ := strings.Cut(page[max(0, strings.Index(page, `id="lab"`)):], "</p>"); strings.Contains(bar,
			"`") {
			t.Errorf("%s: the bar shows backticks: %s", id, bar)
		}
		for _, want := range []string{"Lab " + id, here.Goal[strings.LastIndex(here.Goal, "`")+1:],
			"go run ./cmd/lab check " + id, promise} {
			assert.True(t, strings.Contains(page, want), "%s: the page does not say %s", id, want)
		}
		assert.Equal(t, strings.Contains(page, `id="lab-state"`), here.Rule > 0,
			"%s is about promise %d; the page says otherwise", id, here.Rule)
		figure := ask(ui, "GET", "/?figure", "").Body.String()
		assert.False(t, strings.Contains(figure, `id="lab"`), "%s: a chapter's figure names the lab", id)
	}
}
