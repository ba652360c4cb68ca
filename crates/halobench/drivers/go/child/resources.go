package child

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// period is how often memory is sampled.
const period = 50 * time.Millisecond

// usage has the counters now, from getrusage and /proc/self/io.
func usage() spec.Usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	io, _ := os.ReadFile("/proc/self/io")
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)*1e-6 }
	return spec.Usage{
		CPUUserS:            seconds(r.Utime),
		CPUSystemS:          seconds(r.Stime),
		SwitchesVoluntary:   uint64(r.Nvcsw),
		SwitchesInvoluntary: uint64(r.Nivcsw),
		ReadBytes:           field(string(io), "read_bytes:"),
		WriteBytes:          field(string(io), "write_bytes:"),
		CancelledWriteBytes: field(string(io), "cancelled_write_bytes:"),
	}
}

// usageSince is what was used since start.
func usageSince(start spec.Usage) spec.Usage {
	now := usage()
	return spec.Usage{
		CPUUserS:            now.CPUUserS - start.CPUUserS,
		CPUSystemS:          now.CPUSystemS - start.CPUSystemS,
		SwitchesVoluntary:   now.SwitchesVoluntary - start.SwitchesVoluntary,
		SwitchesInvoluntary: now.SwitchesInvoluntary - start.SwitchesInvoluntary,
		ReadBytes:           now.ReadBytes - start.ReadBytes,
		WriteBytes:          now.WriteBytes - start.WriteBytes,
		CancelledWriteBytes: now.CancelledWriteBytes - start.CancelledWriteBytes,
	}
}

// field is the number behind name at the start of a line; 0 if there is none.
func field(text, name string) uint64 {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name); found {
			if words := strings.Fields(rest); len(words) > 0 {
				n, _ := strconv.ParseUint(words[0], 10, 64)
				return n
			}
		}
	}
	return 0
}

// memory is the resident memory now.
func memory() spec.Memory {
	raw, _ := os.ReadFile("/proc/self/status")
	status := string(raw)
	return spec.Memory{
		Anon:  field(status, "RssAnon:") * 1024,
		File:  field(status, "RssFile:") * 1024,
		Shmem: field(status, "RssShmem:") * 1024,
	}
}

// space is what a folder and those below it hold.
func space(dir string) spec.Space {
	var sum spec.Space
	// A file that a merge removes meanwhile is no error.
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum.Allocated += uint64(stat.Blocks) * 512
		}
		sum.Apparent += uint64(info.Size())
		sum.Files++
		return nil
	})
	return sum
}

// progress is one thread's count of operations done, on a cache line of its own.
type progress struct {
	done atomic.Uint64
	_    [120]byte
}

// sample samples memory and progress until stop is closed: the peaks and the series. Sets over after so many seconds,
// unless these are 0.
func sample(all []progress, stop <-chan struct{}, seconds float64, over *atomic.Bool) (spec.Memory, []spec.Point) {
	start := time.Now()
	peak := memory()
	var s series
	done := func() (sum uint64) {
		for i := range all {
			sum += all[i].done.Load()
		}
		return sum
	}
	var end <-chan time.Time
	if seconds > 0 {
		end = time.After(time.Duration(min(seconds, 1e9) * 1e9))
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-end:
			over.Store(true)
		case <-tick.C:
		}
		now := memory()
		peak.Anon = max(peak.Anon, now.Anon)
		peak.File = max(peak.File, now.File)
		peak.Shmem = max(peak.Shmem, now.Shmem)
		if !stopped {
			s.at(time.Since(start).Seconds(), done)
		}
	}
	return peak, append(s.points, spec.Point{Seconds: time.Since(start).Seconds(), Ops: done()})
}

const (
	// Seconds between two points of a series, in its first minute and in one that is longer.
	fine, coarse = 0.1, 1.0
	minute       = 60.0
)

// series has points at even distances: fine ones, until there are too many.
type series struct {
	points []spec.Point
	// Points taken, of this fineness.
	taken    uint64
	isCoarse bool
}

// at takes a point if one is due now.
func (s *series) at(now float64, done func() uint64) {
	step := fine
	if !s.isCoarse && now > minute {
		// Of each second's points the first one stays.
		kept := s.points[:0:0]
		for _, point := range s.points {
			whole := math.Floor(point.Seconds)
			if whole >= coarse && (len(kept) == 0 || math.Floor(kept[len(kept)-1].Seconds) < whole) {
				kept = append(kept, point)
			}
		}
		s.points, s.isCoarse, s.taken = kept, true, uint64(now/coarse)-1
	}
	if s.isCoarse {
		step = coarse
	}
	if now >= float64(s.taken+1)*step {
		s.points = append(s.points, spec.Point{Seconds: now, Ops: done()})
		s.taken = uint64(now / step)
	}
}
