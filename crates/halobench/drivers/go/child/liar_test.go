package child

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// lie is what an engine for tests does wrong, each a bug that engines have had.
type lie int

const (
	honest lie = iota
	// Drops one put in ten.
	losesKeys
	// Answers gets of some keys with their first value.
	oldValue
	// Keeps the first value of some keys for good.
	ignoresOverwrite
	// Swaps two neighbours in scans.
	reordersScan
	// Leaves out a key in scans.
	skipsInScan
	// Seeks land one too far.
	seeksTooFar
	// Flips a bit of some values.
	corruptsValue
	// Keeps some deleted keys.
	keepsDeleted
	// Comes back without some keys.
	forgetsOnReopen
)

// liar is a map that outlives its engines, as a folder does. It keeps the newest and the first value of a key.
type liar struct {
	lie lie
	mu  sync.Mutex
	all map[string][2]string
}

func newLiar(l lie) *liar { return &liar{lie: l, all: map[string][2]string{}} }

func (l *liar) open(string, string, *spec.Config) (engine.Engine, error) { return l, nil }

// chosen is one key in ten, by its last bytes.
func chosen(key string) bool {
	h := uint32(7)
	for i := len(key) - 1; i >= 0 && i >= len(key)-4; i-- {
		h = h*31 + uint32(key[i])
	}
	return h%10 == 0
}

func (l *liar) Session() (engine.Session, error)   { return &liarSession{l: l}, nil }
func (l *liar) Settle(time.Duration) (bool, error) { return true, nil }
func (l *liar) Stats() map[string]string           { return nil }
func (l *liar) Stores() bool                       { return true }

func (l *liar) Close() error {
	if l.lie == forgetsOnReopen {
		for key := range l.all {
			if chosen(key) {
				delete(l.all, key)
			}
		}
	}
	return nil
}

type liarSession struct {
	l     *liar
	batch []func()
}

func (s *liarSession) Put(key, value []byte) error {
	_ = s.BatchPut(key, value)
	return s.Commit()
}

func (s *liarSession) Delete(key []byte) error {
	_ = s.BatchDelete(key)
	return s.Commit()
}

func (s *liarSession) BatchPut(k, v []byte) error {
	key, value, l := string(k), string(v), s.l
	s.batch = append(s.batch, func() {
		old, known := l.all[key]
		switch {
		case l.lie == losesKeys && chosen(key), l.lie == ignoresOverwrite && chosen(key) && known:
			return
		case l.lie == corruptsValue && chosen(key):
			value = value[:len(value)-1] + string(value[len(value)-1]^1)
		}
		if !known {
			old[1] = value
		}
		l.all[key] = [2]string{value, old[1]}
	})
	return nil
}

func (s *liarSession) BatchDelete(k []byte) error {
	key, l := string(k), s.l
	s.batch = append(s.batch, func() {
		if l.lie != keepsDeleted || !chosen(key) {
			delete(l.all, key)
		}
	})
	return nil
}

func (s *liarSession) Commit() error {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for _, write := range s.batch {
		write()
	}
	s.batch = nil
	return nil
}

func (s *liarSession) Get(key []byte) ([]byte, bool, error) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	values, found := s.l.all[string(key)]
	if s.l.lie == oldValue && chosen(string(key)) {
		return []byte(values[1]), found, nil
	}
	return []byte(values[0]), found, nil
}

func (s *liarSession) Close() error { return nil }

// Cursor is over a copy.
func (s *liarSession) Cursor(backward bool) (engine.Cursor, error) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	c := &liarCursor{lie: s.l.lie, backward: backward}
	for key, values := range s.l.all {
		c.entries = append(c.entries, [2]string{key, values[0]})
	}
	slices.SortFunc(c.entries, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if middle := len(c.entries) / 2; middle > 0 {
		switch c.lie {
		case reordersScan:
			for i := 0; i+1 < len(c.entries); i += 10 {
				c.entries[i], c.entries[i+1] = c.entries[i+1], c.entries[i]
			}
		case skipsInScan:
			c.entries = slices.Delete(c.entries, middle, middle+1)
		}
	}
	if backward {
		slices.Reverse(c.entries)
	}
	return c, nil
}

type liarCursor struct {
	lie      lie
	backward bool
	entries  [][2]string
	at       int
}

func (c *liarCursor) First() (bool, error) {
	c.at = 0
	return c.at < len(c.entries), nil
}

func (c *liarCursor) Seek(key []byte) (bool, error) {
	c.at = slices.IndexFunc(c.entries, func(e [2]string) bool {
		order := strings.Compare(e[0], string(key))
		return order >= 0 && !c.backward || order <= 0 && c.backward
	})
	if c.at < 0 {
		c.at = len(c.entries)
	} else if c.lie == seeksTooFar {
		c.at++
	}
	return c.at < len(c.entries), nil
}

func (c *liarCursor) Next() (bool, error) {
	c.at++
	return c.at < len(c.entries), nil
}

func (c *liarCursor) Key() []byte            { return []byte(c.entries[c.at][0]) }
func (c *liarCursor) Value() ([]byte, error) { return []byte(c.entries[c.at][1]), nil }
func (c *liarCursor) Close() error           { return nil }
