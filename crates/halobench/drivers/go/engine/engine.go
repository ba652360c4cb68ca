// Package engine puts the engines under test behind one small interface.
//
// An Engine is shared by all threads; each thread works through a Session of its own. Reads lend their bytes until the
// session's next call, so that no engine pays for a copy that its interface does not make.
package engine

import (
	"fmt"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// Engine is an open database.
type Engine interface {
	// Session makes one for a thread.
	Session() (Session, error)
	// Settle writes memory to tables, where the engine can be told to, and waits until no merge is due, for at most
	// limit. False if there is work left.
	Settle(limit time.Duration) (bool, error)
	// Stats has figures that the engine gives about itself.
	Stats() map[string]string
	// Stores is false for the engine that stores nothing: its answers are compared, for the cost, and not judged.
	Stores() bool
	// Close closes the database.
	Close() error
}

// Session is one thread's access.
type Session interface {
	// Put sets a key, committed on its own.
	Put(key, value []byte) error
	// Delete removes a key, committed on its own.
	Delete(key []byte) error
	// BatchPut adds a put to the batch; the bytes may be changed afterwards.
	BatchPut(key, value []byte) error
	// BatchDelete adds a removal to the batch.
	BatchDelete(key []byte) error
	// Commit commits the batch, whole or not at all, and empties it.
	Commit() error
	// Get is the value of a key as of now; nil and false if there is none.
	Get(key []byte) ([]byte, bool, error)
	// Cursor makes one over a stable view, used for many seeks in one direction.
	Cursor(backward bool) (Cursor, error)
	// Close ends the session.
	Close() error
}

// Cursor is a position among the entries. It moves in the direction that it was made for: the first entry of a
// backward cursor is the largest.
type Cursor interface {
	// First moves to the first entry in its direction, and tells whether there is one.
	First() (bool, error)
	// Seek moves to the first entry at or behind key in its direction, and tells whether there is one.
	Seek(key []byte) (bool, error)
	// Next moves on by one, and tells whether there is an entry.
	Next() (bool, error)
	// Key is the entry's key, only after a move that found an entry.
	Key() []byte
	// Value is the entry's value, only after a move that found an entry.
	Value() ([]byte, error)
	// Close ends the cursor.
	Close() error
}

// Opener opens, creating it if need be, a database in a folder.
type Opener func(dir string, config *spec.Config) (Engine, error)

var openers = map[string]Opener{
	"badger":  openBadger,
	"bbolt":   openBbolt,
	"null-go": openNull,
	"pebble":  openPebble,
}

// Open opens the database of the engine called name.
func Open(name, dir string, config *spec.Config) (Engine, error) {
	open, known := openers[name]
	if !known {
		return nil, fmt.Errorf("this driver knows no engine %q", name)
	}
	return open(dir, config)
}

// noClass says that an engine has no setting for a durability class.
func noClass(engine, class string) error {
	return fmt.Errorf("%s has no setting for the durability class %q", engine, class)
}

// arena keeps copies of short-lived bytes until it is reset.
type arena struct {
	block []byte
}

// keep copies bytes; the copy is good until the reset.
func (a *arena) keep(b []byte) []byte {
	if cap(a.block)-len(a.block) < len(b) {
		// Older copies stay alive in the block that they are in.
		a.block = make([]byte, 0, max(2*cap(a.block), len(b), 1<<16))
	}
	start := len(a.block)
	a.block = append(a.block, b...)
	return a.block[start:len(a.block):len(a.block)]
}

func (a *arena) reset() { a.block = a.block[:0] }
