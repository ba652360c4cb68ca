package child

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
)

// epoch is the moment from which this process counts nanoseconds: one clock is read then, not two.
var epoch = time.Now()

// nanos is the time since epoch.
func nanos() int64 { return int64(time.Since(epoch)) }

// longest is the largest latency that is told apart, in nanoseconds: hours.
const longest = 1 << 45

// recorder collects one thread's latencies, of one call in every.
type recorder struct {
	histogram *hdrhistogram.Histogram
	every     uint64
	until     uint64
}

func newRecorder(every uint64) *recorder {
	return &recorder{hdrhistogram.New(1, longest, 3), max(every, 1), 1}
}

// begin is the time before a call, or -1 if it is not this call's turn. In an open loop (p is not nil) it always is,
// and its time began when it was due.
func (r *recorder) begin(p *pace) int64 {
	if p != nil {
		return p.due
	}
	r.until--
	if r.until > 0 {
		return -1
	}
	r.until = r.every
	return nanos()
}

// end notes the time after a call that began at start.
func (r *recorder) end(start int64) {
	if start >= 0 {
		// A longer one counts as the longest.
		_ = r.histogram.RecordValue(min(max(nanos()-start, 0), longest))
	}
}

// merge is all threads' latencies together.
func merge(recorders []*recorder) *hdrhistogram.Histogram {
	all := hdrhistogram.New(1, longest, 3)
	for _, r := range recorders {
		all.Merge(r.histogram)
	}
	return all
}

// percentiles of a histogram.
func percentiles(h *hdrhistogram.Histogram, perBatch bool) spec.Latency {
	if h.TotalCount() == 0 {
		return spec.Latency{PerBatch: perBatch}
	}
	// The library rounds a quantile to the nearest sample; the lab, as HDR histograms elsewhere, takes the next one up.
	at := func(q float64) uint64 {
		n := float64(h.TotalCount())
		return uint64(h.ValueAtPercentile(100 * math.Ceil(q*n) / n))
	}
	finite := func(x float64) float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return 0
		}
		return x
	}
	return spec.Latency{
		PerBatch: perBatch,
		Samples:  uint64(h.TotalCount()),
		MeanNs:   finite(h.Mean()),
		StddevNs: finite(h.StdDev()),
		MinNs:    uint64(h.Min()),
		P50Ns:    at(0.5),
		P95Ns:    at(0.95),
		P99Ns:    at(0.99),
		P999Ns:   at(0.999),
		P9999Ns:  at(0.9999),
		MaxNs:    uint64(h.Max()),
	}
}

// encode is the histogram's V2 encoding, not compressed, in base64. The library makes the compressed encoding only:
// eight bytes of header, then this one through zlib. Empty if the histogram is.
func encode(h *hdrhistogram.Histogram) (string, error) {
	if h.TotalCount() == 0 {
		return "", nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encoding a histogram: %w", err)
	}
	packed, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(packed) < 8 {
		return "", fmt.Errorf("unpacking a histogram: %w", err)
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		return "", fmt.Errorf("unpacking a histogram: %w", err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return "", fmt.Errorf("unpacking a histogram: %w", err)
	}
	return base64.StdEncoding.EncodeToString(plain), nil
}
