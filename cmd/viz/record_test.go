package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// TestWhatGoesWrongIsSavedInTheFolderOfFlights requests a version that the ring no longer holds: a file must appear.
func TestWhatGoesWrongIsSavedInTheFolderOfFlights(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "-flight", dir, "-demo=false", "-controllers=false", "-ring-capacity=4")
	for i := range 9 {
		p.createPod(t, fmt.Sprint("pod-", i))
	}
	_, said := p.get(t, "/api/v1/pods?watch=true&resourceVersion=2")
	assert.True(t, strings.Contains(said, "too old resource version"), said)
	eventually.Holds(t, "it is saved", func() bool { return len(require.Value(os.ReadDir(dir))(t)) == 1 })
	p.endsWell(t)
	_, records := readRecording(t, filepath.Join(dir, require.Value(os.ReadDir(dir))(t)[0].Name()))
	assert.True(t, len(records) > 100, "%d records", len(records))
}

func TestARecordingThatFallsBehindEndsAloneAndSaysSo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "log.gz")
		var stderr strings.Builder
		log := probe.NewLog(clock.RealClock{}, 4)
		stop := require.Value(startRecording(&options{record: name, end: &ending{}}, nil, log, &stderr))(t)
		synctest.Wait()
		for rv := range uint64(9) {
			probe.New(log).At(probe.RingAppend, "default/a", rv)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		said := stderr.String()
		assert.True(t, strings.Count(said, "\n") == 1 && strings.Contains(said, name) &&
			strings.Contains(said, "continues without"), "said %q", said)
		assert.NoError(t, stop(), "said before")
	})
}

// TestARecordingThatFailsAtTheEndEndsTheProgramWithThat expects the recording's error from a run that ends when ready.
func TestARecordingThatFailsAtTheEndEndsTheProgramWithThat(t *testing.T) {
	o := require.Value(parseOptions([]string{"-flight=off", "-demo=false", "-controllers=false"}, io.Discard))(t)
	o.end = &ending{}
	listener := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	defer listener.Close()
	ctx, stop := context.WithCancel(t.Context())
	etcd := require.Value(openEtcd(ctx, o))(t)
	defer func() { assert.NoError(t, etcd.close()) }()
	host := o.host(etcd, listener, io.Discard)
	host.Record = func(*probe.Log) (func() error, error) { return func() error { return syscall.ENOSPC }, nil }
	err := machine.Serve(ctx, host, o.Options, stop)
	assert.True(t, errors.Is(err, syscall.ENOSPC), "got %v", err)
}

// readRecording reads a file that -record or -flight has written.
func readRecording(t *testing.T, file string) (recording.Header, []probe.Record) {
	t.Helper()
	rec := require.Value(recording.Open(t.Context(), file))(t)
	return rec.Header, rec.Records
}

func TestASwitchIsChangedWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-initial=list")
	p.createPod(t, "a")
	began := p.how(t)
	for _, bad := range []struct {
		target, value string
		want          int
	}{{"fifo", "both", http.StatusBadRequest}, {"listen", ":0", http.StatusNotFound}, {"", "", http.StatusNotFound}} {
		code, body := p.post(t, "/viz/knobs",
			fmt.Sprintf(`{"name":"switch","target":%q,"value":%q}`, bad.target, bad.value))
		assert.True(t, code == bad.want, "%s=%s: got %d, want %d; %s", bad.target, bad.value, code, bad.want, body)
	}
	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"real"}`) // the switch already has this value
	now := p.how(t)
	assert.True(t, now.Log == began.Log, "started again for nothing")

	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	now = p.startedAgain(t, began)
	assert.True(t, now.Switches["fifo"] == "delta" && now.Switches["initial"] == "list",
		"started again with %v", now.Switches)
	for path, want := range map[string]string{"/viz/state": `"kind":"delta"`,
		"/api/v1/namespaces/default/pods/a": `"name":"a"`} {
		// /readyz is about the server half; the client half may begin a moment later.
		eventually.Holds(t, "GET "+path+" has "+want, func() bool {
			_, body := p.get(t, path)
			return strings.Contains(body, want)
		})
	}
	p.post(t, "/viz/reset", "")
	now = p.startedAgain(t, now)
	assert.True(t, now.Switches["fifo"] == "real", "after the reset: %v", now.Switches)
	p.endsWell(t)
}

func TestARecordingIsOfOneSetOfSwitches(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-flight=off", "-record", filepath.Join(t.TempDir(), "a.lw.gz"))
	code, body := p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	assert.Equal(t, http.StatusConflict, code, "got %d, %s", code, body)
	assert.Equal(t, "real", p.how(t).Switches["fifo"])
	p.end(t)
}

// how identifies the log that the program writes, and the switches with which it runs.
type how struct {
	Log      string
	Switches map[string]string
}

func (p *program) how(t *testing.T) (now how) {
	t.Helper()
	_, body := p.get(t, "/viz/snapshot")
	require.NoError(t, json.Unmarshal([]byte(body), &now))
	return now
}

// startedAgain returns when the program writes a new log and is ready.
func (p *program) startedAgain(t *testing.T, before how) how {
	t.Helper()
	var now how
	eventually.Holds(t, "the program starts again", func() bool {
		if now = p.how(t); now.Log == before.Log || now.Log == "" { // "": neither the old nor the new run answers
			return false
		}
		code, _ := p.get(t, "/readyz") // requested second, so that the new run answers
		return code == http.StatusOK
	})
	return now
}

// written maps each flag that names an output file to the function that writes the file.
var written = map[string]func(name string) error{
	"-kubeconfig": func(name string) error { return writeKubeconfig(name, "http://127.0.0.1:1") },
	"-record": func(name string) error {
		o := &options{record: name, end: &ending{}}
		stop, err := startRecording(o, nil, probe.NewLog(clock.RealClock{}, 4), io.Discard)
		if err == nil {
			err = stop()
		}
		return err
	},
}

// TestWhatIsNotOursIsLeftAlone expects each flag to refuse another program's file, a link or a folder as its target.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	for flag, write := range written {
		for name, put := range map[string]func(t *testing.T, file, other string) error{
			"a file of another program": func(_ *testing.T, file, _ string) error {
				return os.WriteFile(file, []byte("precious"), 0o644)
			},
			"a link to a file of another program": func(_ *testing.T, file, other string) error {
				return os.Symlink(other, file)
			},
			"a link to a file of ours": func(t *testing.T, file, other string) error {
				require.NoError(t, os.Remove(other))
				require.NoError(t, write(other))
				return os.Symlink(other, file)
			},
			"a link to nothing": func(_ *testing.T, file, other string) error { return os.Symlink(other+".no", file) },
			"a folder":          func(_ *testing.T, file, _ string) error { return os.Mkdir(file, 0o755) },
		} {
			t.Run(flag+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
				require.NoError(t, os.WriteFile(other, []byte("precious"), 0o644))
				require.NoError(t, put(t, file, other))
				before := contents(t, dir)
				err := write(file)
				assert.True(t, err != nil && strings.Contains(err.Error(), file+" is "), "got %v", err)
				assert.Equal(t, before, contents(t, dir), "what is there")
			})
		}
	}
}

// contents returns a folder's contents as text: names, types, targets of links, and contents of files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries := require.Value(os.ReadDir(dir))(t)
	var text strings.Builder
	for _, each := range entries {
		name := filepath.Join(dir, each.Name())
		to, _ := os.Readlink(name)   // "" if it is not a link
		body, _ := os.ReadFile(name) // empty if it is a folder, or a link to nothing
		text.WriteString(strings.Join([]string{each.Name(), each.Type().String(), to, string(body)}, " ") + "\n")
	}
	return text.String()
}

// TestWhatIsWrittenIsItsOwnersAlone writes where there is no file, an empty file, or a file of ours that every user can
// read and that has a second name. The result must be a new file that only its owner can read.
func TestWhatIsWrittenIsItsOwnersAlone(t *testing.T) {
	for flag, write := range written {
		dir := t.TempDir()
		fresh, empty, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "empty"), filepath.Join(dir, "old")
		require.NoError(t, os.WriteFile(empty, nil, 0o644))
		require.NoError(t, write(old))
		require.NoError(t, os.Chmod(old, 0o644))
		require.NoError(t, os.Link(old, old+"2"))
		kept := require.Value(os.Stat(old))(t)
		for _, name := range []string{fresh, empty, old} {
			require.NoError(t, write(name), "%s %s", flag, name)
			info := require.Value(os.Stat(name))(t)
			mode := info.Mode().Perm()
			assert.True(t, mode == 0o600 || runtime.GOOS == "windows", "%s %s: mode %o, want 600", flag, name, mode)
			assert.False(t, os.SameFile(info, kept), "%s: written into a file that others can read", flag)
		}
		var names []string
		for _, each := range require.Value(os.ReadDir(dir))(t) {
			names = append(names, each.Name())
		}
		assert.True(t, slices.Equal(names, []string{"empty", "fresh", "old", "old2"}), "%s leaves %q", flag, names)
	}
}
