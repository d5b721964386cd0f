package probe

import (
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

func TestEveryWaitHasAnEndAndAPlace(t *testing.T) {
	var names, queues []string
	for _, p := range Points() {
		names = append(names, p.String())
		queues = append(queues, p.Info().Queue)
	}
	// unbuffered, or the network: drawn as the way between two stations
	queues = append(queues, "stream", "wire", "add", "next")
	for _, p := range Points() {
		info := p.Info()
		if info.Waits == "" {
			assert.True(t, info.On+info.Holds+info.Until == "", "%s does not wait, but has On, Holds or Until", p)
			continue
		}
		assert.True(t, info.Until != "", "%s waits for ever", p)
		for _, name := range strings.Fields(info.Until) {
			assert.True(t, slices.Contains(names, name), "%s ends with %s, which is no point", p, name)
		}
		for _, queue := range append(strings.Fields(info.Holds), strings.Fields(info.On)...) {
			assert.True(t, slices.Contains(queues, queue), "%s waits at or holds %s, which is no queue", p, queue)
		}
	}
}
