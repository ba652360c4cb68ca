package engine

import (
	"fmt"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// bbolt: opened as etcd opens it (the freelist in a hash map and not written at each commit; the map large enough from
// the start, so that readers never wait for it to grow), with these terms.
//
//   - NoSync: pages are written with pwrite, the meta page last, so a killed process loses nothing. The default syncs
//     twice at each commit.
//   - It has one writer at a time. A lone put is an Update; where several threads put, it is a Batch, which lets them
//     share a commit. MaxBatchSize is the number of threads, so that nobody waits for a caller that does not exist.
//   - A get copies its value: bytes are lent only within a transaction, and one that stays open holds pages and may
//     block a writer.
//   - Memtable, cache and compression do not exist; the page cache does the work.
type bboltEngine struct {
	db    *bolt.DB
	share bool
}

var bucketName = []byte("lab")

// How long a Batch waits for other callers: less than a commit takes. The default of 10 ms would be the latency of every
// put where fewer threads write than work.
const (
	batchDelay       = 200 * time.Microsecond
	batchDelaySynced = time.Millisecond
)

func openBbolt(dir string, config *spec.Config) (Engine, error) {
	opt := *bolt.DefaultOptions
	opt.FreelistType = bolt.FreelistMapType
	opt.NoFreelistSync = true
	opt.InitialMmapSize = int(3*config.ExpectedBytes + 64<<20)
	switch config.Durability {
	case "process":
		opt.NoSync = true
	case "sync":
		opt.NoSync = false
	default:
		return nil, noClass("bbolt", config.Durability)
	}
	db, err := bolt.Open(filepath.Join(dir, "bolt.db"), 0o600, &opt)
	if err != nil {
		return nil, fmt.Errorf("opening bbolt: %w", err)
	}
	db.MaxBatchSize = max(config.Threads, 1)
	db.MaxBatchDelay = batchDelay
	if !opt.NoSync {
		db.MaxBatchDelay = batchDelaySynced
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making bbolt's bucket: %w", err)
	}
	return &bboltEngine{db, config.Threads > 1}, nil
}

func (e *bboltEngine) Session() (Session, error)          { return &bboltSession{engine: e}, nil }
func (e *bboltEngine) Stores() bool                       { return true }
func (e *bboltEngine) Settle(time.Duration) (bool, error) { return true, nil }
func (e *bboltEngine) Close() error                       { return e.db.Close() }

func (e *bboltEngine) Stats() map[string]string {
	s := e.db.Stats()
	return map[string]string{
		"free_pages":    fmt.Sprint(s.FreePageN),
		"pending_pages": fmt.Sprint(s.PendingPageN),
		"tx_writes":     fmt.Sprint(s.TxStats.GetWrite()),
		"tx_rebalance":  fmt.Sprint(s.TxStats.GetRebalance()),
		"tx_split":      fmt.Sprint(s.TxStats.GetSplit()),
	}
}

type bboltWrite struct {
	key, value []byte
	remove     bool
}

type bboltSession struct {
	engine *bboltEngine
	batch  []bboltWrite
	bytes  arena
	value  []byte
}

// write runs a lone write in a transaction of its own, or one shared with other threads.
func (s *bboltSession) write(work func(*bolt.Tx) error) error {
	if s.engine.share {
		return s.engine.db.Batch(work)
	}
	return s.engine.db.Update(work)
}

func (s *bboltSession) Put(key, value []byte) error {
	return s.write(func(tx *bolt.Tx) error { return tx.Bucket(bucketName).Put(key, value) })
}

func (s *bboltSession) Delete(key []byte) error {
	return s.write(func(tx *bolt.Tx) error { return tx.Bucket(bucketName).Delete(key) })
}

func (s *bboltSession) BatchPut(key, value []byte) error {
	s.batch = append(s.batch, bboltWrite{s.bytes.keep(key), s.bytes.keep(value), false})
	return nil
}

func (s *bboltSession) BatchDelete(key []byte) error {
	s.batch = append(s.batch, bboltWrite{s.bytes.keep(key), nil, true})
	return nil
}

func (s *bboltSession) Commit() error {
	err := s.engine.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bucketName)
		for _, w := range s.batch {
			var err error
			if w.remove {
				err = bucket.Delete(w.key)
			} else {
				err = bucket.Put(w.key, w.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.batch = s.batch[:0]
	s.bytes.reset()
	return err
}

func (s *bboltSession) Get(key []byte) ([]byte, bool, error) {
	found := false
	err := s.engine.db.View(func(tx *bolt.Tx) error {
		if v := tx.Bucket(bucketName).Get(key); v != nil {
			found = true
			s.value = append(s.value[:0], v...)
		}
		return nil
	})
	return s.value, found, err
}

func (s *bboltSession) Close() error { return nil }

func (s *bboltSession) Cursor(backward bool) (Cursor, error) {
	tx, err := s.engine.db.Begin(false)
	if err != nil {
		return nil, err
	}
	return &bboltCursor{tx: tx, c: tx.Bucket(bucketName).Cursor(), backward: backward}, nil
}

type bboltCursor struct {
	tx         *bolt.Tx
	c          *bolt.Cursor
	backward   bool
	key, value []byte
}

func (c *bboltCursor) at(key, value []byte) (bool, error) {
	c.key, c.value = key, value
	return key != nil, nil
}

func (c *bboltCursor) First() (bool, error) {
	if c.backward {
		return c.at(c.c.Last())
	}
	return c.at(c.c.First())
}

func (c *bboltCursor) Seek(key []byte) (bool, error) {
	found, value := c.c.Seek(key)
	switch {
	case !c.backward || (found != nil && string(found) == string(key)):
		return c.at(found, value)
	case found == nil:
		return c.at(c.c.Last())
	default:
		return c.at(c.c.Prev())
	}
}

func (c *bboltCursor) Next() (bool, error) {
	if c.backward {
		return c.at(c.c.Prev())
	}
	return c.at(c.c.Next())
}

func (c *bboltCursor) Key() []byte            { return c.key }
func (c *bboltCursor) Value() ([]byte, error) { return c.value, nil }
func (c *bboltCursor) Close() error           { return c.tx.Rollback() }
