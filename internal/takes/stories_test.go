package takes

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/fold"
	"listwatch/internal/mvcc"
	"listwatch/internal/pipenet"
	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
	"listwatch/internal/scenario"
)

// shootStory plays a story on a whole pipeline in a bubble, and returns the recording: it ends where the last beat rests.
func shootStory(t *testing.T, id string) (file []byte) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // the bubble's
		listener := pipenet.Listen()
		s := &set{log: probe.NewLog(clk, 1<<16), before: fold.New()}
		p := probe.New(s.log)
		server, err := pipeline.NewServer(pipeline.ServerConfig{Client: mvcc.New(clk), Clock: clk, Probe: p, UseWatchList: true})
		if err != nil {
			t.Fatal(err)
		}
		connections := sandbox.NewConnections(listener.Client(), nil)
		client, err := pipeline.NewClient(pipeline.ClientConfig{
			Base: &url.URL{Scheme: "http", Host: "pipe"}, HTTP: connections.Client(), Clock: clk, Probe: p, UseWatchList: true, Controllers: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		whole := &pipeline.Pipeline{Server: server, Client: client}
		box, err := sandbox.New(sandbox.Config{Pipeline: whole, Connections: connections, Clock: clk, Probe: p, Gate: s.log.Gate()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}) // closed when Run has returned
		go func() {
			defer close(ended)
			whole.Run(ctx, func(ctx context.Context) {
				front := &http.Server{Handler: server.Handler()}
				go front.Serve(listener)
				<-ctx.Done()
				front.Close()
			}, box.Run)
		}()
		if err := whole.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a kubelet that came before the server was ready tries again
		s.roll()
		world := &scenario.World{Pipeline: whole, Sandbox: box, Log: s.log, Probe: p, Clock: clk}
		seen, err := world.Play(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Untold != "" {
			t.Fatal(seen.Untold)
		}
		synctest.Wait()
		file = s.develop(t, seen.Beats[len(seen.Beats)-1].To)
		cancel()
		<-ended
		listener.Close()
	})
	return file
}

// TestMakeStories makes the take of every story; with -update it keeps them.
func TestMakeStories(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.ID, func(t *testing.T) {
			take, ok := Find(StoryPrefix + each.ID)
			if !ok || take.Title != each.Title {
				t.Fatalf("the take of the story %q: got %+v", each.Title, take)
			}
			file := shootStory(t, each.ID)
			check(t, take, file)
			if *update {
				if err := os.WriteFile(take.Name+Suffix, file, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEveryBeatStandsInItsTake finds the beats of every story in the take that the program brings along.
func TestEveryBeatStandsInItsTake(t *testing.T) {
	size := 0
	for _, take := range slices.Concat(All, Stories) {
		size += len(take.File())
		id, ok := strings.CutPrefix(take.Name, StoryPrefix)
		if !ok {
			continue
		}
		i := slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool { return s.ID == id })
		_, records, err := take.Load()
		if i < 0 || err != nil {
			t.Fatalf("%s: story %d: %v", id, i, err)
		}
		if _, err := scenario.All[i].Locate(records); err != nil {
			t.Error(err)
		}
	}
	if size > 1_500_000 {
		t.Errorf("all takes together: %d bytes, want at most 1.5 MB", size)
	}
}
