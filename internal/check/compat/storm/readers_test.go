package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
)

// pager reads the list in pages, and then the exact list at the version of the first page: they have to be equal, however
// long it took.
type pager struct {
	api    *api
	random *rand.Rand

	// Owned by run; read when it has returned.
	nCompared, nExpired int
	faults              faults
}

// run reads until ctx is done.
func (p *pager) run(ctx context.Context) {
	defer p.api.close()
	for pause(ctx, time.Duration(100+p.random.IntN(400))*time.Millisecond) {
		rv, pages, ok := p.inPages(ctx)
		if !ok {
			continue
		}
		exact, _, ok := p.get(url.Values{"resourceVersion": {rv}, "resourceVersionMatch": {"Exact"}})
		if !ok {
			continue
		}
		p.nCompared++
		want := versions(exact.Items)
		if exact.Metadata.ResourceVersion != rv || !maps.Equal(pages, want) {
			p.faults.add("pages at %s hold %d objects, the exact list at %s %d", rv, len(pages), exact.Metadata.ResourceVersion, len(want))
		}
	}
}

// inPages returns the version of the list and the version of each object.
func (p *pager) inPages(ctx context.Context) (rv string, all map[string]string, ok bool) {
	query := url.Values{"limit": {fmt.Sprint(1 + p.random.IntN(7))}}
	all = map[string]string{}
	for {
		list, next, ok := p.get(query)
		if !ok {
			return "", nil, false
		}
		if rv != "" && list.Metadata.ResourceVersion != rv {
			p.faults.add("a page at %s after one at %s", list.Metadata.ResourceVersion, rv)
		}
		rv = list.Metadata.ResourceVersion
		before := len(all) + len(list.Items)
		maps.Copy(all, versions(list.Items))
		if len(all) != before {
			p.faults.add("a page at %s holds an object twice", rv)
		}
		if next == "" {
			return rv, all, true
		}
		query.Set("continue", next)
		if !pause(ctx, time.Duration(p.random.IntN(10))*time.Millisecond) {
			return "", nil, false
		}
	}
}

func (p *pager) get(query url.Values) (list configMapList, next string, ok bool) {
	r := p.api.do("GET", configMapsOf(namespace)+"?"+query.Encode(), nil)
	if r.code == http.StatusGone {
		p.nExpired++
	}
	if r.code != http.StatusOK || r.read(&list) != nil {
		return list, "", false
	}
	return list, list.Metadata.Continue, true
}

func versions(items []configMap) map[string]string {
	all := map[string]string{}
	for _, item := range items {
		all[item.Metadata.Name] = item.Metadata.ResourceVersion
	}
	return all
}

// page reads the page's feed as a browser does: it resumes, and begins again when it is told that what it knows has gone.
// It also holds the ten promises to what it reads, up to the record with which the program is killed.
type page struct {
	base string
	slow time.Duration // before it reads a message

	// Owned by run; read when it has returned.
	log                              string
	seq                              uint64
	known                            bool
	rules                            *rules.Checker // of this log
	nFeeds, nRecords, nSummed, nGone int
	faults                           faults
}

// run reads until ctx is done.
func (p *page) run(ctx context.Context) {
	dialer := net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && p.slow > 0 {
			_ = tcp.SetReadBuffer(4 << 10) // what it does not read shall be felt
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for ctx.Err() == nil {
		if p.known || p.list(ctx, client) {
			p.feed(ctx, client)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// list reports whether there is a record to follow from.
func (p *page) list(ctx context.Context, client *http.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, 4*callWithin)
	defer cancel()
	var snapshot struct {
		Log string
		Seq uint64
	}
	body, err := get(ctx, client, p.base+"/viz/snapshot")
	if err != nil {
		return false
	}
	defer body.Body.Close()
	if json.NewDecoder(body.Body).Decode(&snapshot) != nil {
		return false
	}
	if p.log != snapshot.Log || p.rules == nil {
		p.rules = rules.New()
	}
	p.log, p.seq, p.known = snapshot.Log, snapshot.Seq, true
	return true
}

func get(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return response, err
}

// feed reads one stream to its end.
func (p *page) feed(ctx context.Context, client *http.Client) {
	response, err := get(ctx, client, fmt.Sprintf("%s/viz/events?since=%d&log=%s", p.base, p.seq, url.QueryEscape(p.log)))
	if err != nil {
		return
	}
	defer response.Body.Close()
	p.nFeeds++
	lines := bufio.NewReaderSize(response.Body, 4<<10)
	kind := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			kind = strings.TrimSpace(name)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			p.message(kind, []byte(data))
			if !pause(ctx, p.slow) || !p.known {
				return
			}
		}
	}
}

// message checks that no record is left out and none comes twice.
func (p *page) message(kind string, data []byte) {
	switch kind {
	case "frame":
		records, err := readFrame(data)
		if err != nil {
			p.faults.add("a frame after record %d: %v", p.seq, err)
		}
		for _, record := range records {
			p.reach(kind, record.Seq-1, record.Seq)
		}
		for _, breach := range p.rules.Apply(records) {
			p.faults.add("%v", breach)
		}
		p.nRecords += len(records)
	case "coalesced":
		var sum struct{ From, Seq, Records uint64 }
		if err := json.Unmarshal(data, &sum); err != nil || sum.Records != sum.Seq-sum.From {
			p.faults.add("a sum after record %d: %+v, %v", p.seq, sum, err)
		}
		p.reach(kind, sum.From, sum.Seq)
		p.nSummed += int(sum.Records)
	case "bookmark":
		var bookmark struct{ Seq uint64 }
		if err := json.Unmarshal(data, &bookmark); err != nil || bookmark.Seq != p.seq {
			p.faults.add("a bookmark after record %d: %s %v", p.seq, data, err)
		}
	case "gone":
		p.nGone++
		p.known = false
	}
}

func (p *page) reach(kind string, from, to uint64) {
	if from != p.seq {
		p.faults.add("a %s of (%d, %d] after record %d", kind, from, to, p.seq)
	}
	p.seq = to
}

func readFrame(data []byte) (records []probe.Record, err error) {
	var lines []json.RawMessage
	err = json.Unmarshal(data, &lines)
	for _, line := range lines {
		record, failed := fold.ReadRecord(line)
		err = errors.Join(err, failed)
		records = append(records, record)
	}
	return records, err
}
