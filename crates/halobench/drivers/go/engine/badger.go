package engine

import (
	"errors"
	"fmt"
	"os"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// Badger: its defaults, with these terms.
//
//   - SyncWrites false: a commit is in files mapped to be shared (the memtable's log) before it returns, so a killed
//     process loses nothing. SyncWrites true: msync at each commit.
//   - The plan writes blindly, so DetectConflicts is off: its documents advise that where conflicts do not matter.
//   - It has no LZ4: compressed means Snappy, its default. Not compressed means without a block cache too, as its
//     documents say: tables are mapped.
//   - Values stay in the tables, unless they are above ValueThreshold (1 MiB by default, at most what fits a
//     transaction): so there is no value log to be collected.
//   - A batch is one transaction. One that is larger than it allows (15 % of the memtable) is an error, never split.
//   - It cannot be told to flush; settled means that no level's score asks for a merge. Flatten, which merges all
//     levels into one, would give it a shape that the others are not given.
type badgerEngine struct{ db *badger.DB }

func openBadger(dir string, config *spec.Config) (Engine, error) {
	opt := badger.DefaultOptions(dir).
		WithMemTableSize(int64(config.WriteBuffer)).
		WithDetectConflicts(false).
		WithLogger(quietLogger{})
	opt.ValueThreshold = min(opt.ValueThreshold, opt.MemTableSize*15/100)
	switch config.Durability {
	case "process":
		opt.SyncWrites = false
	case "sync":
		opt.SyncWrites = true
	default:
		return nil, noClass("badger", config.Durability)
	}
	if config.Compression == "none" {
		opt = opt.WithCompression(options.None).WithBlockCacheSize(0)
	} else {
		opt = opt.WithCompression(options.Snappy).WithBlockCacheSize(int64(config.Cache))
	}
	db, err := badger.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("opening badger: %w", err)
	}
	return &badgerEngine{db}, nil
}

func (e *badgerEngine) Session() (Session, error) { return &badgerSession{db: e.db}, nil }
func (e *badgerEngine) Stores() bool              { return true }
func (e *badgerEngine) Close() error              { return e.db.Close() }

// due tells whether a level asks for a merge: Levels gives scores to those only.
func (e *badgerEngine) due() bool {
	for _, level := range e.db.Levels() {
		if level.Score >= 1 {
			return true
		}
	}
	return false
}

func (e *badgerEngine) Settle(limit time.Duration) (bool, error) {
	return waitIdle(limit, func() bool { return !e.due() }), nil
}

func (e *badgerEngine) Stats() map[string]string {
	stats := map[string]string{}
	for _, level := range e.db.Levels() {
		if level.NumTables > 0 {
			stats[fmt.Sprintf("level%d", level.Level)] = fmt.Sprintf("%d tables, %d bytes", level.NumTables, level.Size)
		}
	}
	if m := e.db.BlockCacheMetrics(); m != nil {
		stats["block_cache_hit_ratio"] = fmt.Sprintf("%.3f", m.Ratio())
	}
	return stats
}

// badgerSession keeps the read transaction of its last get, which lent bytes, until its next call.
type badgerSession struct {
	db    *badger.DB
	read  *badger.Txn
	batch *badger.Txn
	size  int
	bytes arena
}

func (s *badgerSession) release() {
	if s.read != nil {
		s.read.Discard()
		s.read = nil
	}
}

func (s *badgerSession) Put(key, value []byte) error {
	s.release()
	return s.db.Update(func(txn *badger.Txn) error { return txn.Set(key, value) })
}

func (s *badgerSession) Delete(key []byte) error {
	s.release()
	return s.db.Update(func(txn *badger.Txn) error { return txn.Delete(key) })
}

func (s *badgerSession) begin() *badger.Txn {
	if s.batch == nil {
		s.release()
		s.batch = s.db.NewTransaction(true)
		s.size = 0
	}
	s.size++
	return s.batch
}

func (s *badgerSession) fits(err error) error {
	if errors.Is(err, badger.ErrTxnTooBig) {
		return fmt.Errorf("a batch of %d writes or more is too big for one transaction of badger (at most %d entries and "+
			"%d bytes with this memtable), and is not split here: make the batch smaller or the write buffer larger",
			s.size, s.db.MaxBatchCount(), s.db.MaxBatchSize())
	}
	return err
}

func (s *badgerSession) BatchPut(key, value []byte) error {
	return s.fits(s.begin().Set(s.bytes.keep(key), s.bytes.keep(value)))
}

func (s *badgerSession) BatchDelete(key []byte) error {
	return s.fits(s.begin().Delete(s.bytes.keep(key)))
}

func (s *badgerSession) Commit() error {
	if s.batch == nil {
		return nil
	}
	err := s.fits(s.batch.Commit())
	s.batch.Discard()
	s.batch = nil
	s.bytes.reset()
	return err
}

func (s *badgerSession) Get(key []byte) (value []byte, found bool, err error) {
	s.release()
	txn := s.db.NewTransaction(false)
	item, err := txn.Get(key)
	if err != nil {
		txn.Discard()
		if errors.Is(err, badger.ErrKeyNotFound) {
			err = nil
		}
		return nil, false, err
	}
	s.read = txn
	err = item.Value(func(v []byte) error {
		value = v
		return nil
	})
	return value, true, err
}

func (s *badgerSession) Close() error {
	s.release()
	if s.batch != nil {
		s.batch.Discard()
	}
	return nil
}

func (s *badgerSession) Cursor(backward bool) (Cursor, error) {
	s.release()
	// Values lie beside their keys: fetching them ahead would start a goroutine for each.
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Reverse = backward
	txn := s.db.NewTransaction(false)
	return &badgerCursor{txn: txn, it: txn.NewIterator(opt)}, nil
}

type badgerCursor struct {
	txn *badger.Txn
	it  *badger.Iterator
	val []byte
}

func (c *badgerCursor) First() (bool, error) {
	c.it.Rewind()
	return c.it.Valid(), nil
}

func (c *badgerCursor) Seek(key []byte) (bool, error) {
	c.it.Seek(key)
	return c.it.Valid(), nil
}

func (c *badgerCursor) Next() (bool, error) {
	c.it.Next()
	return c.it.Valid(), nil
}

func (c *badgerCursor) Key() []byte { return c.it.Item().Key() }

func (c *badgerCursor) Value() ([]byte, error) {
	err := c.it.Item().Value(func(v []byte) error {
		c.val = v
		return nil
	})
	return c.val, err
}

func (c *badgerCursor) Close() error {
	c.it.Close()
	c.txn.Discard()
	return nil
}

// quietLogger passes on errors only.
type quietLogger struct{}

func (quietLogger) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "badger: "+format+"\n", args...)
}
func (quietLogger) Warningf(string, ...any) {}
func (quietLogger) Infof(string, ...any)    {}
func (quietLogger) Debugf(string, ...any)   {}

// waitIdle polls until idle was true for a quarter of a second, for at most limit.
func waitIdle(limit time.Duration, idle func() bool) bool {
	const step = 5 * time.Millisecond
	const calm = 250 * time.Millisecond
	end := time.Now().Add(limit)
	since := time.Now()
	for {
		now := time.Now()
		if !idle() {
			since = now
		} else if now.Sub(since) >= calm {
			return true
		}
		if now.After(end) {
			return false
		}
		time.Sleep(step)
	}
}
