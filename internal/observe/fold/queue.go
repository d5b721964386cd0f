package fold

// transfer counts one Send or Recv of a channel. The two sides report without a common lock, so the k-th receive
// may be folded before the k-th send; whichever comes second settles the pair, and no token is seen twice. A send
// beyond the capacity proves that the receiver has taken one, although the record of it is yet to come.
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

// between is the length of a channel, computed from its sends and receives.
func (q *Queue) between() int64 {
	if q.Cap > 0 {
		return min(q.Sent-q.Received, q.Cap)
	}
	return q.Sent - q.Received
}

// change counts one Push or Pop of a queue that a lock or one goroutine protects, so length is exact. A push that
// leaves the length as it was found its key queued already; a pop may take several.
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

// settle makes length the length and lets the oldest tokens go: the newest ones remain, so they are right even if
// records were lost.
func (q *Queue) settle(length int64) {
	q.Len = max(0, length)
	q.High = max(q.High, q.Len)
	q.Tokens = newest(q.Tokens, min(q.Len, maxTokens))
}

// newest returns the last n elements of list, or all. It moves them to the front of the array, so a list that is
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
