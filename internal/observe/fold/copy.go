package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
)

// MaxNumber is the largest number of a record or a picture: the page's are exact up to there.
const MaxNumber = 1 << 53

// Clone returns a state that shares nothing with s.
func (s *State) Clone() *State { return whole(reflect.ValueOf(s)).Interface().(*State) }

// blank returns a new value without a nil map, list or pointer in it.
func blank[T any]() *T { return whole(reflect.ValueOf(new(T))).Interface().(*T) }

// whole returns a copy of a value that shares nothing with it. Where the value has a nil map, list or pointer, the copy
// has an empty one. Elements of lists are plain values here.
func whole(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if v.IsNil() {
			v = to
		}
		to.Elem().Set(whole(v.Elem()))
		return to
	case reflect.Struct:
		to := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			to.Field(i).Set(whole(v.Field(i)))
		}
		return to
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for each := v.MapRange(); each.Next(); {
			to.SetMapIndex(each.Key(), whole(each.Value()))
		}
		return to
	case reflect.Slice:
		return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
	}
	return v
}

// Read returns the state that was written as JSON. What the text does not say is as in the beginning: an earlier
// version of the program did not know of it. The error says that the text is not a state, has a number beyond
// [MaxNumber], or holds more than [State.Fits] allows; what would take too much memory is not read at all.
func Read(written []byte) (*State, error) {
	values := bytes.Count(written, []byte("{")) + bytes.Count(written, []byte(","))
	if values > maxValues {
		return nil, fmt.Errorf("read state: more than the %d subjects, stores and waits that can be shown", MaxParts)
	}
	s := &State{}
	if err := json.Unmarshal(written, s); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if s.Seq > MaxNumber || s.T < 0 || s.T > MaxNumber {
		return nil, fmt.Errorf("read state: record %d at %d ns: a number is larger than 2^53, or negative", s.Seq, s.T)
	}
	if err := s.Fits(); err != nil { // before it is made whole, which takes ten times the memory
		return nil, err
	}
	s = s.Clone()
	for _, res := range s.Resources {
		res.trim()
	}
	return s, nil
}

// trim drops what the fold would not have kept.
func (r *Resource) trim() {
	maps.DeleteFunc(r.Waits, func(_ string, waits []Wait) bool { return len(waits) == 0 })
	r.Ring.Cells = newest(r.Ring.Cells, maxCells)
	for _, shelf := range r.Shelves {
		shelf.Rows = newest(shelf.Rows, MaxRows)
	}
	for _, subject := range r.Subjects {
		for _, queue := range subject.Queues {
			queue.Tokens = newest(queue.Tokens, maxTokens)
		}
	}
}
