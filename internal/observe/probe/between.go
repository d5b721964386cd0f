package probe

import "iter"

// betweenBatch is how many records Between takes at once, so that a reader never holds the log's lock for long.
const betweenBatch = 1024

// Between yields the records in (from, to] that the log still holds, oldest first: where the log overruns its reader,
// records are left out. Each record is valid until the next one is yielded.
func (l *Log) Between(from, to uint64) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		var batch []Record
		for from < to {
			var ok bool
			batch, ok = l.Since(batch[:0], from, int(min(betweenBatch, to-from)))
			if !ok && from < l.Last() {
				from = l.Oldest() - 1
				continue
			}
			if len(batch) == 0 {
				return
			}
			for i := range batch {
				if !yield(&batch[i]) {
					return
				}
			}
			from = batch[len(batch)-1].Seq
		}
	}
}
