//go:build !linux

package child

import "time"

// alarm sleeps as well as the runtime does.
type alarm struct{}

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (alarm) close() error { return nil }
