package engine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// Pebble: the newest format, filters of 10 bits a key, up to four memtables, level 0 merged early and never a reason to
// stop writes before 1000 runs (as its own tools and CockroachDB set it), as many merges at once as there are cores,
// with these terms.
//
//   - Its NoSync leaves a commit in the process's memory until a block of the log (32 KiB) is full: nothing brings the
//     rest to the kernel, so a killed process loses commits. That is the class none.
//   - The class process has no switch. It is had by Sync over a file system that leaves out the syncs of the log alone:
//     a commit waits until the log's bytes are written, which is what that class means.
//   - Sync syncs the log at each commit; commits of several threads share it.
//   - It has no LZ4: compressed means Snappy, its default.
type pebbleEngine struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

func openPebble(dir string, config *spec.Config) (Engine, error) {
	write := pebble.Sync
	fs := vfs.Default
	switch config.Durability {
	case "none":
		write = pebble.NoSync
	case "process":
		fs = logUnsynced{fs}
	case "sync":
	default:
		return nil, noClass("pebble", config.Durability)
	}
	compression := sstable.SnappyCompression
	if config.Compression == "none" {
		compression = sstable.NoCompression
	}
	cores := runtime.NumCPU()
	opt := &pebble.Options{
		CacheSize:                   int64(config.Cache),
		FS:                          fs,
		FormatMajorVersion:          pebble.FormatNewest,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		Logger:                      pebbleLogger{},
		MaxOpenFiles:                16384,
		MemTableSize:                config.WriteBuffer,
		MemTableStopWritesThreshold: 4,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(cores, 2) },
	}
	for i := range opt.Levels {
		opt.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opt.Levels[i].FilterType = pebble.TableFilter
		opt.Levels[i].Compression = func() *sstable.CompressionProfile { return compression }
	}
	db, err := pebble.Open(dir, opt)
	if err != nil {
		return nil, fmt.Errorf("opening pebble: %w", err)
	}
	return &pebbleEngine{db, write}, nil
}

func (e *pebbleEngine) Session() (Session, error) { return &pebbleSession{engine: e}, nil }
func (e *pebbleEngine) Stores() bool              { return true }
func (e *pebbleEngine) Close() error              { return e.db.Close() }

func (e *pebbleEngine) Settle(limit time.Duration) (bool, error) {
	if err := e.db.Flush(); err != nil {
		return false, err
	}
	return waitIdle(limit, func() bool {
		m := e.db.Metrics()
		return m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0
	}), nil
}

func (e *pebbleEngine) Stats() map[string]string {
	m := e.db.Metrics()
	stats := map[string]string{
		"compactions":      fmt.Sprint(m.Compact.Count),
		"compaction_debt":  fmt.Sprint(m.Compact.EstimatedDebt),
		"flushes":          fmt.Sprint(m.Flush.Count),
		"read_amp":         fmt.Sprint(m.ReadAmp()),
		"block_cache_hits": fmt.Sprint(m.BlockCache.Hits),
		"block_cache_miss": fmt.Sprint(m.BlockCache.Misses),
	}
	for i, level := range m.Levels {
		if level.TablesCount > 0 {
			stats[fmt.Sprintf("level%d", i)] = fmt.Sprintf("%d tables, %d bytes", level.TablesCount, level.TablesSize)
		}
	}
	return stats
}

// pebbleSession keeps the handle of its last get, which lent bytes, until its next call.
type pebbleSession struct {
	engine *pebbleEngine
	lent   interface{ Close() error }
	batch  *pebble.Batch
}

func (s *pebbleSession) release() error {
	if s.lent == nil {
		return nil
	}
	lent := s.lent
	s.lent = nil
	return lent.Close()
}

func (s *pebbleSession) Put(key, value []byte) error {
	if err := s.release(); err != nil {
		return err
	}
	return s.engine.db.Set(key, value, s.engine.write)
}

func (s *pebbleSession) Delete(key []byte) error {
	if err := s.release(); err != nil {
		return err
	}
	return s.engine.db.Delete(key, s.engine.write)
}

func (s *pebbleSession) begin() *pebble.Batch {
	if s.batch == nil {
		s.batch = s.engine.db.NewBatch()
	}
	return s.batch
}

func (s *pebbleSession) BatchPut(key, value []byte) error { return s.begin().Set(key, value, nil) }
func (s *pebbleSession) BatchDelete(key []byte) error     { return s.begin().Delete(key, nil) }

func (s *pebbleSession) Commit() error {
	if s.batch == nil {
		return nil
	}
	batch := s.batch
	s.batch = nil
	return errors.Join(s.release(), batch.Commit(s.engine.write), batch.Close())
}

func (s *pebbleSession) Get(key []byte) ([]byte, bool, error) {
	if err := s.release(); err != nil {
		return nil, false, err
	}
	value, lent, err := s.engine.db.Get(key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			err = nil
		}
		return nil, false, err
	}
	s.lent = lent
	return value, true, nil
}

func (s *pebbleSession) Close() error {
	if s.batch != nil {
		return errors.Join(s.release(), s.batch.Close())
	}
	return s.release()
}

func (s *pebbleSession) Cursor(backward bool) (Cursor, error) {
	it, err := s.engine.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	return &pebbleCursor{it, backward, nil}, nil
}

type pebbleCursor struct {
	it       *pebble.Iterator
	backward bool
	past     []byte
}

func (c *pebbleCursor) found(valid bool) (bool, error) {
	if valid {
		return true, nil
	}
	return false, c.it.Error()
}

func (c *pebbleCursor) First() (bool, error) {
	if c.backward {
		return c.found(c.it.Last())
	}
	return c.found(c.it.First())
}

func (c *pebbleCursor) Seek(key []byte) (bool, error) {
	if c.backward {
		// The smallest key behind this one: what is before that is at or before this one.
		c.past = append(append(c.past[:0], key...), 0)
		return c.found(c.it.SeekLT(c.past))
	}
	return c.found(c.it.SeekGE(key))
}

func (c *pebbleCursor) Next() (bool, error) {
	if c.backward {
		return c.found(c.it.Prev())
	}
	return c.found(c.it.Next())
}

func (c *pebbleCursor) Key() []byte            { return c.it.Key() }
func (c *pebbleCursor) Value() ([]byte, error) { return c.it.ValueAndErr() }
func (c *pebbleCursor) Close() error           { return c.it.Close() }

// logUnsynced is a file system that leaves out the syncs of the write-ahead log, and nothing else.
type logUnsynced struct{ vfs.FS }

func (f logUnsynced) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err == nil && strings.HasSuffix(name, ".log") {
		file = unsynced{file}
	}
	return file, err
}

func (f logUnsynced) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return f.wrap(name, file, err)
}

func (f logUnsynced) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, category)
	return f.wrap(name, file, err)
}

func (f logUnsynced) Unwrap() vfs.FS { return f.FS }

type unsynced struct{ vfs.File }

func (unsynced) Sync() error                             { return nil }
func (unsynced) SyncData() error                         { return nil }
func (unsynced) SyncTo(int64) (fullSync bool, err error) { return false, nil }

// pebbleLogger passes on errors only.
type pebbleLogger struct{}

func (pebbleLogger) Infof(string, ...any) {}

func (pebbleLogger) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "pebble: "+format+"\n", args...)
}

func (pebbleLogger) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "pebble: "+format+"\n", args...)
	os.Exit(1)
}
