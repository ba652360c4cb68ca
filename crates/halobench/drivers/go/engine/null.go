package engine

import (
	"fmt"
	"os"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// crashVariable, if it is "phase", makes this engine end the process at a put: tests see what becomes of a driver that
// dies.
const crashVariable = "HALOBENCH_DRIVER_CRASH"

// null does nothing: what remains is the driver's own cost.
type null struct{ crash bool }

func openNull(string, *spec.Config) (Engine, error) {
	return null{os.Getenv(crashVariable) == "phase"}, nil
}

func (n null) Session() (Session, error)        { return &nullSession{crash: n.crash}, nil }
func (null) Settle(time.Duration) (bool, error) { return true, nil }
func (null) Stats() map[string]string           { return nil }
func (null) Stores() bool                       { return false }
func (null) Close() error                       { return nil }

type nullSession struct {
	sum   uint64
	crash bool
}

// touch reads the ends, so that the work which made the bytes cannot be dropped.
func (s *nullSession) touch(b []byte) {
	if len(b) > 0 {
		s.sum += uint64(b[0]) + uint64(b[len(b)-1])
	}
}

func (s *nullSession) Put(key, value []byte) error {
	if s.crash {
		fmt.Fprintln(os.Stderr, "ended by "+crashVariable)
		os.Exit(70)
	}
	s.touch(key)
	s.touch(value)
	return nil
}

func (s *nullSession) Delete(key []byte) error {
	s.touch(key)
	return nil
}

func (s *nullSession) BatchPut(key, value []byte) error { return s.Put(key, value) }
func (s *nullSession) BatchDelete(key []byte) error     { return s.Delete(key) }
func (s *nullSession) Commit() error                    { return nil }
func (s *nullSession) Close() error                     { return nil }

func (s *nullSession) Get(key []byte) ([]byte, bool, error) {
	s.touch(key)
	return nil, true, nil
}

func (s *nullSession) Cursor(bool) (Cursor, error) { return &nullCursor{key: make([]byte, 16)}, nil }

// nullCursor stays wherever it was sent, for ever: it has no end.
type nullCursor struct{ key []byte }

func (c *nullCursor) First() (bool, error) { return true, nil }

func (c *nullCursor) Seek(key []byte) (bool, error) {
	c.key = append(c.key[:0], key...)
	return true, nil
}

func (c *nullCursor) Next() (bool, error)    { return true, nil }
func (c *nullCursor) Key() []byte            { return c.key }
func (c *nullCursor) Value() ([]byte, error) { return c.key, nil }
func (c *nullCursor) Close() error           { return nil }
