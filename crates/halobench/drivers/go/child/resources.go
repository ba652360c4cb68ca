package child

import (
	"io/fs"
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

// sample samples memory and progress until stop is closed: the peaks and the series, a point a second and one at the
// end.
func sample(all []progress, stop <-chan struct{}) (spec.Memory, []spec.Point) {
	start := time.Now()
	peak := memory()
	series := []spec.Point{}
	next := 1.0
	done := func() (sum uint64) {
		for i := range all {
			sum += all[i].done.Load()
		}
		return sum
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-tick.C:
		}
		now := memory()
		peak.Anon = max(peak.Anon, now.Anon)
		peak.File = max(peak.File, now.File)
		peak.Shmem = max(peak.Shmem, now.Shmem)
		if elapsed := time.Since(start).Seconds(); elapsed >= next {
			series = append(series, spec.Point{Seconds: elapsed, Ops: done()})
			next++
		}
	}
	return peak, append(series, spec.Point{Seconds: time.Since(start).Seconds(), Ops: done()})
}
