package child

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// nap is the longest sleep between two looks at whether all is over.
const nap = 20 * time.Millisecond

// pace is the schedule of one thread of an open loop. Moments are absolute: one late operation does not move the next, so
// that the wait of those behind a stall is measured. Moments are nanoseconds since epoch.
type pace struct {
	arrivals workload.Arrivals
	alarm    alarm
	start    int64
	dueS     float64
	due      int64
	lag      int64
}

// newPace is a schedule that begins now.
func newPace(arrivals workload.Arrivals) (*pace, error) {
	alarm, err := newAlarm()
	now := nanos()
	return &pace{arrivals: arrivals, alarm: alarm, start: now, due: now}, err
}

// wait waits until the batch operations from j on are due; false if over came true meanwhile.
func (p *pace) wait(j, batch uint64, over *atomic.Bool) (bool, error) {
	p.dueS += p.arrivals.Gap(j, batch)
	p.due = p.start + int64(min(p.dueS, 1e9)*1e9)
	for {
		if over.Load() {
			return false, nil
		}
		now := nanos()
		if now >= p.due {
			p.lag = max(p.lag, now-p.due)
			return true, nil
		}
		if left := time.Duration(p.due - now); left > time.Microsecond {
			if err := p.alarm.sleep(min(left, nap)); err != nil {
				return false, err
			}
		} else {
			runtime.Gosched()
		}
	}
}

func (p *pace) close() error { return p.alarm.close() }
