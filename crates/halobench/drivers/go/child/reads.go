package child

import (
	"bytes"
	"errors"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

func (w *worker) gets(session engine.Session) error {
	values, plain, racing := w.gen.values, w.expect.IsPlain(), w.racing()
	for j := w.share.Start; j < w.share.End; j++ {
		id := w.ops.ID(j)
		w.gen.keys.Encode(id, w.key)
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		value, found, err := session.Get(w.key)
		if err != nil {
			return err
		}
		w.end(begin)
		var right bool
		switch {
		case !found:
			right = !plain && !w.expect.Has(id)
		case racing != nil:
			right = racing.Plausible(values, id, value, false)
		case plain:
			right = values.Is(id, 0, value)
		default:
			right = w.expect.Check(values, id, value)
		}
		if found {
			w.digest += workload.Digest(value)
		}
		if !right && w.judge {
			w.wrongGet(found, len(value))
		}
		w.step()
	}
	return nil
}

func (w *worker) mixedOps(session engine.Session) error {
	racing := w.racing()
	for j := w.share.Start; j < w.share.End; j++ {
		id, put := w.ops.ID(j), w.ops.Writes(j)
		if put {
			w.fill(id, w.version(j))
		} else {
			w.gen.keys.Encode(id, w.key)
		}
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		if put {
			begin := w.parts[1].begin(w.pace)
			if err := session.Put(w.key, w.value); err != nil {
				return err
			}
			w.parts[1].end(begin)
			w.puts++
		} else {
			begin := w.parts[0].begin(w.pace)
			value, found, err := session.Get(w.key)
			if err != nil {
				return err
			}
			w.parts[0].end(begin)
			right := !found && !w.expect.Has(id) || found && racing.Plausible(w.gen.values, id, value, false)
			if !right && w.judge {
				w.wrongGet(found, len(value))
			}
		}
		w.step()
	}
	return nil
}

// seeks go forward in any phase. They keep their cursor, unless writers are in the background.
func (w *worker) seeks(session engine.Session) (err error) {
	fresh := w.phase.Background != nil
	var cursor engine.Cursor
	if !fresh {
		if cursor, err = session.Cursor(false); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cursor.Close()) }()
	}
	for j := w.share.Start; j < w.share.End; j++ {
		w.gen.keys.Encode(w.ops.ID(j), w.key)
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		if fresh {
			if cursor, err = session.Cursor(false); err != nil {
				return err
			}
		}
		found, err := cursor.Seek(w.key)
		if err != nil {
			return err
		}
		exact := found && bytes.Equal(cursor.Key(), w.key)
		w.end(begin)
		if !exact && w.judge {
			// A key that is not there: all that is known is that what is found lies behind it.
			if w.expect.Has(w.ops.ID(j)) || found && bytes.Compare(cursor.Key(), w.key) <= 0 {
				w.wrong.note("a seek to %s did not find it", show(w.key))
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
