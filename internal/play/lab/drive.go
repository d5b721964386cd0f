package lab

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"listwatch/internal/observe/rules"
)

// Action is a line of a step's script: a request to the built program, or a command, and the expected answer. In a
// request, What and Want, $NAME is the part of an answer that Keep has saved under that name, and $pad is 20,000 bytes.
// With Times, $i in Do is the number of the request, from 0.
type Action struct {
	Do     string            `json:"do"`    // METHOD PATH [BODY]; or RUN COMMAND, in the step's folder; $SERVER: URL
	Times  int               `json:"times"` // number of concurrent requests whose responses are ignored; 0: one request
	Later  bool              `json:"later"` // a stream, compared after the last action
	After  int               `json:"after"` // milliseconds to wait before the request
	Keep   map[string]string `json:"keep"`  // parts of the answer to save, by name: patterns with one group
	What   string            `json:"what"`  // describes the compared part; "": nothing is compared
	Show   string            `json:"show"`  // a pattern: compares its groups or, without groups, the number of matches
	Want   string            `json:"want"`
	Within int               `json:"within"` // seconds to repeat Do until it matches; 0: three for GET /viz/, else none
}

// Drive builds and starts the program in the working copy dir, plays the step's script, and stops it. It writes each
// action to progress. problem is a failed build or start, or the first wrong response, or "". broken lists the broken
// promises' numbers. err means that ctx is done, the script took over five minutes, or the program cannot be run.
func (l Lab) Drive(ctx context.Context, dir string, progress io.Writer) (problem string, broken []int, err error) {
	binary := filepath.Join(dir, PathFolder, "viz.exe") // Windows only starts files with this suffix
	fmt.Fprintln(progress, "building the program, to run it with -demo=false", strings.Join(l.Flags, " "), "…")
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(PathFolder, "viz.exe"), "./cmd/viz")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("It does not compile yet.\n%.2000s", out), nil, ctx.Err()
	}
	ctx, end := context.WithTimeout(ctx, 5*checkLimit)
	program := exec.CommandContext(ctx, binary, append([]string{"-listen=127.0.0.1:0", "-demo=false", "-flight=off"},
		l.Flags...)...)
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = 5 * time.Second // an interrupted program is killed after this time
	stdout, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		end()
		return "", nil, err
	}
	defer func() {
		end()
		http.DefaultClient.CloseIdleConnections()
		_ = program.Wait() // the exit code does not matter
	}()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if url, listens := strings.CutPrefix(lines.Text(), "listening on "); listens {
			kept := map[string]string{"pad": strings.Repeat("x", 20_000)}
			p := &player{url, filepath.Join(dir, l.dir()), progress, kept}
			problem = p.play(ctx, l.Script)
			return problem, p.broken(ctx), ctx.Err()
		}
	}
	return "The program does not start: go run ./cmd/viz says why.", nil, nil
}

// player plays a script on the program at url.
type player struct {
	url, dir string
	progress io.Writer
	kept     map[string]string
}

// play sends the script's requests, writes each to progress, and returns the first problem. It compares streams last.
func (p *player) play(ctx context.Context, script []Action) (problem string) {
	var later []func() string
	for _, a := range script {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(a.After) * time.Millisecond):
		}
		fmt.Fprintf(p.progress, "  %s%s\n", strings.TrimPrefix(fmt.Sprint(a.Times, " × "), "0 × "), a.Do)
		if a.Later {
			body, came := p.open(ctx, a.Do), make(chan string, 1)
			go func() { came <- body() }()
			later = append(later, func() string { return p.differs(a, <-came) })
			continue
		}
		var requests sync.WaitGroup
		for i := range a.Times {
			requests.Go(func() { p.open(ctx, strings.ReplaceAll(a.Do, "$i", fmt.Sprint(i)))() })
		}
		requests.Wait()
		if a.Times > 0 {
			continue
		}
		for began := time.Now(); ; {
			problem = p.differs(a, p.open(ctx, a.Do)())
			late := time.Since(began) > time.Duration(cmp.Or(a.Within, 3))*time.Second
			if problem == "" || late || ctx.Err() != nil || !strings.HasPrefix(a.Do, "GET /viz/") && a.Within == 0 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if problem != "" {
			break
		}
	}
	for _, differs := range later {
		last := differs() // waits for the stream to end, even after a problem
		problem = cmp.Or(problem, last)
	}
	return problem
}

// open sends a request and waits for the response's header, or runs a command to its end. The caller must call read
// once; read returns the response's status and body, the command's output, or the request's error.
func (p *player) open(ctx context.Context, do string) (read func() string) {
	if command, runs := strings.CutPrefix(do, "RUN "); runs {
		words := strings.Fields(command)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "SERVER="+p.url)
		out, _ := cmd.CombinedOutput() // the output describes a failure
		return func() string { return string(out) }
	}
	words := append(strings.SplitN(os.Expand(do, p.value), " ", 3), "")
	var response *http.Response
	request, err := http.NewRequestWithContext(ctx, words[0], p.url+words[1], strings.NewReader(words[2]))
	if err == nil {
		mediaType := map[string]string{"PATCH": "application/merge-patch+json"}[words[0]]
		request.Header.Set("Content-Type", cmp.Or(mediaType, "application/json"))
		response, err = http.DefaultClient.Do(request)
	}
	if err != nil {
		return err.Error
	}
	return func() string {
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // a stream may end with an error; its bytes count
		return response.Status + "\n" + string(body)
	}
}

func (p *player) value(name string) string {
	if kept, known := p.kept[name]; known {
		return kept
	}
	return "$" + name
}

// differs saves parts of an answer, and describes how it differs from the expected one, or returns "".
func (p *player) differs(a Action, answer string) string {
	for name, pattern := range a.Keep {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(answer); found != nil {
			p.kept[name] = found[1]
		} else {
			return fmt.Sprintf("%s: got %.200q, in which there is no %s", a.Do, answer, name)
		}
	}
	if a.What == "" {
		return ""
	}
	pattern, shown := regexp.MustCompile(a.Show), []string{}
	all := pattern.FindAllStringSubmatch(answer, -1)
	for _, found := range all {
		shown = append(shown, strings.Join(found[1:], ""))
	}
	came, want := cmp.Or(strings.Join(shown, " "), "nothing"), os.Expand(a.Want, p.value)
	if pattern.NumSubexp() == 0 {
		came = fmt.Sprint(len(all))
	}
	if came != want {
		return fmt.Sprintf("%s: got %.300s, want %s", os.Expand(a.What, p.value), came, want)
	}
	return ""
}

// broken returns the numbers of the promises that the program's rules report as broken.
func (p *player) broken(ctx context.Context) (broken []int) {
	var report rules.Report
	_, body, _ := strings.Cut(p.open(ctx, "GET /viz/rules")(), "\n")
	_ = json.Unmarshal([]byte(body), &report) // an empty report if the program has ended
	for _, rule := range report.Rules {
		if rule.Count > 0 {
			broken = append(broken, rule.Number)
		}
	}
	return broken
}
