package child

import (
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// pace says when a thread's operations are due in an open loop, and when a phase's time has run out.
type pace struct {
	// Neither a rate nor an end.
	free bool
	// Nanoseconds between two operations of this thread, and before its first one; 0 in a closed loop.
	interval, offset float64
	limit            int64
	began            int64
}

func newPace(phase *spec.Phase, thread int) pace {
	p := pace{free: phase.Rate <= 0 && phase.Seconds <= 0}
	if phase.Rate > 0 {
		p.interval = 1e9 * float64(phase.Threads) / phase.Rate
		p.offset = 1e9 * float64(thread) / phase.Rate
	}
	if phase.Seconds > 0 {
		p.limit = int64(phase.Seconds * 1e9)
	}
	return p
}

func (p *pace) start() { p.began = nanos() }

// wait waits until the operation behind done others is due: the moment when it was, or -1 in a closed loop. False
// once time has run out.
func (p *pace) wait(done uint64) (due int64, more bool) {
	due = -1
	now := nanos()
	if p.interval > 0 {
		due = p.began + int64(p.offset+float64(done)*p.interval)
		if p.limit > 0 && due-p.began >= p.limit {
			return due, false
		}
		for now < due {
			time.Sleep(time.Duration(due - now))
			now = nanos()
		}
	}
	return due, p.limit == 0 || now-p.began < p.limit
}
