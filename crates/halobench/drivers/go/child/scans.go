package child

import (
	"bytes"
	"errors"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// sampled: of a pass whose values have no digest to be compared with, one entry in so many has its value checked.
const sampled = 16

// walk goes from a key over some entries, and tells what it found.
type walk struct {
	count uint32
	// Whether the first entry has the key itself.
	exact bool
	// Whether keys strictly rose (fell, if the walk goes backward).
	ordered bool
	// Of the values.
	digest uint64
	// The last key.
	previous []byte
	backward bool
	any      bool
}

// begin forgets what was before.
func (k *walk) begin(backward bool) {
	*k = walk{previous: k.previous, ordered: true, backward: backward}
}

// step tells whether key comes behind the one before, and takes its place.
func (k *walk) step(key []byte) bool {
	right := true
	if k.any {
		order := bytes.Compare(k.previous, key)
		right = order < 0 && !k.backward || order > 0 && k.backward
	}
	k.any = true
	k.previous = append(k.previous[:0], key...)
	return right
}

// run seeks key and goes on to up to size entries.
func (k *walk) run(cursor engine.Cursor, key []byte, size uint32, backward bool) error {
	k.begin(backward)
	found, err := cursor.Seek(key)
	k.exact = found && err == nil && bytes.Equal(cursor.Key(), key)
	for found && err == nil {
		k.ordered = k.step(cursor.Key()) && k.ordered
		value, err := cursor.Value()
		if err != nil {
			return err
		}
		k.digest += workload.Digest(value)
		if k.count++; k.count >= size {
			return nil
		}
		if found, err = cursor.Next(); err != nil {
			return err
		}
	}
	return err
}

func (w *worker) scans(session engine.Session) (err error) {
	size, backward, fresh := w.phase.RangeSize, w.phase.Backward, w.phase.Background != nil
	var cursor engine.Cursor
	if !fresh {
		if cursor, err = session.Cursor(backward); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cursor.Close()) }()
	}
	var found walk
	for j := w.share.Start; j < w.share.End; j++ {
		w.gen.keys.Encode(w.ops.ID(j), w.key)
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		if fresh {
			if cursor, err = session.Cursor(backward); err != nil {
				return err
			}
		}
		if err := found.run(cursor, w.key, size, backward); err != nil {
			return err
		}
		w.end(begin)
		w.digest += found.digest
		if w.judge {
			right, err := w.rightRange(j, &found, cursor)
			if err != nil {
				return err
			}
			if !right {
				w.wrong.note("a range of %d from %s was wrong", size, show(w.key))
			}
		}
		if fresh {
			if err := cursor.Close(); err != nil {
				return err
			}
		}
		w.step()
	}
	return nil
}

// rightRange: in order, from the right key, the right number, to the right key with its value: all were there. The
// cursor is where the range ended, if that was not the end of all keys.
func (w *worker) rightRange(j uint64, found *walk, cursor engine.Cursor) (bool, error) {
	last := w.ranges.Last(j)
	if !found.ordered || found.exact != w.expect.Has(w.ops.ID(j)) || found.count != w.ranges.Count(j) {
		return false, nil
	}
	if found.count == 0 {
		return true, nil
	}
	if id, known := w.gen.keys.Decode(found.previous); !known || id != last {
		return false, nil
	}
	if found.count < w.phase.RangeSize {
		return true, nil
	}
	value, err := cursor.Value()
	return err == nil && w.rightValue(last, value), err
}

// iterate is one pass over everything. Its entries are the operations; none of them is timed alone.
func (w *worker) iterate(session engine.Session) (err error) {
	cursor, err := session.Cursor(w.phase.Backward)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	size := w.gen.values.Size()
	expected := w.expect.Count()
	sample := w.phase.Background != nil || !w.expect.IsFirst()
	var found walk
	found.begin(w.phase.Backward)
	more, err := cursor.First()
	if err != nil {
		return err
	}
	// The engine that stores nothing never says that it is done.
	for more && (w.judge || w.done < expected) {
		if !found.step(cursor.Key()) && w.judge {
			w.wrong.note("a pass returned %s out of order", show(cursor.Key()))
		}
		value, err := cursor.Value()
		if err != nil {
			return err
		}
		right := len(value) == size
		w.digest += workload.Digest(value)
		if sample && w.done%sampled == 0 {
			id, known := w.gen.keys.Decode(found.previous)
			right = right && known && w.rightValue(id, value)
		}
		if !right && w.judge {
			w.wrong.note("%s has a wrong or old value", show(found.previous))
		}
		w.step()
		if w.over.Load() {
			return nil
		}
		if more, err = cursor.Next(); err != nil {
			return err
		}
	}
	if w.judge && w.done != expected {
		w.wrong.note("a pass found %d keys where %d are expected", w.done, expected)
	}
	return nil
}
