package child

import "github.com/halocline/halocline/crates/halobench/drivers/go/engine"

func (w *worker) writes(session engine.Session) error {
	for j := w.share.Start; j < w.share.End; j++ {
		w.fill(w.ops.ID(j), w.version(j))
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		if err := session.Put(w.key, w.value); err != nil {
			return err
		}
		w.end(begin)
		w.puts++
		w.step()
	}
	return nil
}

func (w *worker) deletes(session engine.Session) error {
	for j := w.share.Start; j < w.share.End; j++ {
		w.gen.keys.Encode(w.ops.ID(j), w.key)
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		if err := session.Delete(w.key); err != nil {
			return err
		}
		w.end(begin)
		w.step()
	}
	return nil
}

// batches has a whole batch's latency as a sample, with the making of its keys and values.
func (w *worker) batches(session engine.Session, put bool) error {
	for start := w.share.Start; start < w.share.End; {
		stop := min(start+w.phase.Batch, w.share.End)
		if ready, err := w.ready(start, stop-start); !ready {
			return err
		}
		begin := w.begin()
		for j := start; j < stop; j++ {
			var err error
			if put {
				w.fill(w.ops.ID(j), w.version(j))
				err = session.BatchPut(w.key, w.value)
			} else {
				w.gen.keys.Encode(w.ops.ID(j), w.key)
				err = session.BatchDelete(w.key)
			}
			if err != nil {
				return err
			}
		}
		if err := session.Commit(); err != nil {
			return err
		}
		w.end(begin)
		w.done += stop - start
		if put {
			w.puts += stop - start
		}
		w.progress.done.Store(w.done)
		start = stop
	}
	return nil
}

// writer is one of the background's, which overwrite while the phase's own threads read.
type writer struct {
	*shared
	watch
	t          int
	key, value []byte
	// Puts done: the first ones of its share.
	done uint64
}

func newWriter(s *shared, t int) *writer {
	return &writer{
		shared: s,
		watch:  newWatch(0, s.every, &s.quiet),
		t:      t,
		key:    make([]byte, s.gen.keys.Size()),
		value:  make([]byte, s.gen.values.Size()),
	}
}

// run writes until the phase's own threads are done.
func (w *writer) run(session engine.Session) error {
	b := w.phase.Background
	if err := w.start(w.gen.set.Seed, w.phase.Stream+numbers, b.Threads, b.Rate); err != nil {
		return err
	}
	share := w.bgOps.Share(w.t, b.Threads)
	for j := share.Start; j < share.End; j++ {
		id := w.bgOps.ID(j)
		w.gen.keys.Encode(id, w.key)
		w.gen.values.Fill(id, w.bgVersions.Base+j+1, w.value)
		if ready, err := w.ready(j, 1); !ready {
			return err
		}
		begin := w.begin()
		if err := session.Put(w.key, w.value); err != nil {
			return err
		}
		w.end(begin)
		w.done++
	}
	return nil
}
