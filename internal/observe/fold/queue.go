package fold

// transfer counts one Send or Recv of a channel. The two sides report without a common lock, so the k-th receive may be
// folded before the k-th send; the later record settles the pair, so no token appears twice. A send beyond the capacity
// proves a receive whose record is still to come.
func (q *Queue) transfer(send bool, token Token, capacity int64) {
	q.Cap = capacity
	if send {
		q.Sent++
		q.Tokens = append(q.Tokens, token)
	} else {
		q.Received++
	}
	q.settle(q.between())
}

// between returns a channel's sends less its receives, at most its capacity. It may be negative.
func (q *Queue) between() int64 {
	if q.Cap > 0 {
		return min(q.Sent-q.Received, q.Cap)
	}
	return q.Sent - q.Received
}

// change counts one Push or Pop of a queue that a lock or one goroutine protects, so length is exact. If a push does
// not change the length, its key was already queued; a pop may take several tokens.
func (q *Queue) change(token Token, length, capacity int64) {
	q.Cap = capacity
	grown := length - q.Len
	if grown > 0 {
		q.Sent += grown
		q.Tokens = append(q.Tokens, token)
	} else {
		q.Received -= grown
	}
	q.settle(length)
}

// settle sets the length, and drops the oldest tokens beyond it or beyond maxTokens. The remaining tokens are the
// newest, so they are right even if records were lost.
func (q *Queue) settle(length int64) {
	q.Len = max(0, length)
	q.High = max(q.High, q.Len)
	q.Tokens = newest(q.Tokens, min(q.Len, maxTokens))
}

// newest returns the last n elements of list, or all. It moves them to the front of the array, so that a list which is
// trimmed again and again does not grow.
func newest[T any](list []T, n int64) []T {
	drop := int64(len(list)) - max(0, n)
	if drop <= 0 {
		return list
	}
	kept := copy(list, list[drop:])
	clear(list[kept:])
	return list[:kept]
}
