package child

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm sleeps to within some microseconds. The runtime's own sleep may be late by a millisecond, since it waits for its
// timers in whole ones; and a thread that sleeps in the kernel keeps others from running. So the kernel's timer is
// waited for as input is.
type alarm struct {
	timer *os.File
	fd    int
}

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return alarm{}, fmt.Errorf("making a timer: %w", err)
	}
	return alarm{os.NewFile(uintptr(fd), "timer"), fd}, nil
}

func (a alarm) sleep(d time.Duration) error {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &at, nil); err != nil {
		return fmt.Errorf("setting a timer: %w", err)
	}
	var times [8]byte
	if _, err := a.timer.Read(times[:]); err != nil {
		return fmt.Errorf("waiting for a timer: %w", err)
	}
	return nil
}

func (a alarm) close() error { return a.timer.Close() }
