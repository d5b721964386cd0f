//go:build full

package main

import (
	"encoding/json"
	"flag"
	"net/http"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/server/etcdnode"
)

var fullRate = flag.Duration("fullrate", 12*time.Minute, "how long the test of compaction writes")

// TestCompactionKeepsEtcdBelowItsQuota sets the rate of changes to the highest that the page offers, 10,000 a second.
// The program compacts history every five minutes; etcd then holds at most ten minutes, and reuses the space.
func TestCompactionKeepsEtcdBelowItsQuota(t *testing.T) {
	p := start(t, "-flight=off", "-demo=false", "-controllers=false")
	code, body := p.post(t, "/viz/knobs", `{"name":"traffic.rate","value":"10000"}`)
	require.Equal(t, http.StatusOK, code, body)
	for began := time.Now(); time.Since(began) < *fullRate; time.Sleep(10 * time.Second) {
		var knobs struct {
			Traffic sandbox.TrafficInfo
			Etcd    etcdnode.State
		}
		code, body := p.get(t, "/viz/knobs")
		require.NoError(t, json.Unmarshal([]byte(body), &knobs), code)
		m := knobs.Etcd.Members[0]
		t.Logf("%v: %d changes, %d MB", time.Since(began).Round(time.Second), knobs.Traffic.Written, m.Bytes>>20)
		require.True(t, knobs.Traffic.Error == "" && m.Error == "" && !m.Full, "%+v", knobs)
		assert.True(t, m.Bytes < m.Quota/10*9, "the file has %d of %d bytes", m.Bytes, m.Quota)
	}
	p.endsWell(t)
}
