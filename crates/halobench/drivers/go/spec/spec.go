// Package spec is the protocol: what the driver is told, and what it tells back, in JSON, one line each.
// docs/lab/drivers.md describes it.
package spec

import "encoding/json"

// Kind is what a phase does.
type Kind string

// The kinds of phases.
const (
	Write   Kind = "write"
	Read    Kind = "read"
	Mixed   Kind = "mixed"
	Delete  Kind = "delete"
	Seek    Kind = "seek"
	Range   Kind = "range"
	Iterate Kind = "iterate"
	MixKind Kind = "mix"
)

// Changes tells whether a phase of this kind changes the data.
func (k Kind) Changes() bool {
	return k == Write || k == Mixed || k == Delete || k == MixKind
}

// Mix has the shares of a phase of kind mix, in percent; they add up to 100.
type Mix struct {
	Read   uint32 `json:"read"`
	Update uint32 `json:"update"`
	Insert uint32 `json:"insert"`
	Scan   uint32 `json:"scan"`
	Modify uint32 `json:"modify"`
	Latest bool   `json:"latest"`
}

// Background tells of threads that overwrite ids drawn evenly while a phase of reads goes on.
type Background struct {
	Threads int `json:"threads"`
	// Writes a second, of all threads; 0 means as fast as they can.
	Rate float64 `json:"rate"`
	// Most writes of all threads.
	Ops uint64 `json:"ops"`
}

// Phase is one timed (or loading) stretch of work.
type Phase struct {
	// Empty for a load.
	Case      string `json:"case"`
	Kind      Kind   `json:"kind"`
	Order     string `json:"order"`
	Ops       uint64 `json:"ops"`
	Threads   int    `json:"threads"`
	Batch     uint64 `json:"batch"`
	RangeSize uint32 `json:"range_size"`
	Settle    bool   `json:"settle"`
	Stream    uint64 `json:"stream"`
	// Arrivals a second of all threads, an open loop; 0 means a closed one.
	Rate float64 `json:"rate"`
	// Ends the phase after so many seconds; 0 means no such end.
	Seconds    float64     `json:"seconds"`
	Backward   bool        `json:"backward"`
	Mix        *Mix        `json:"mix"`
	Background *Background `json:"background"`
}

// Config has the terms.
type Config struct {
	// Bytes.
	WriteBuffer uint64 `json:"write_buffer"`
	// Bytes.
	Cache uint64 `json:"cache"`
	// none, process, interval or sync.
	Durability string `json:"durability"`
	// none or lz4.
	Compression   string `json:"compression"`
	Threads       int    `json:"threads"`
	ExpectedBytes uint64 `json:"expected_bytes"`
}

// DataSet is a set of keys and values.
type DataSet struct {
	// Ids run from 0 to here.
	N         uint64 `json:"n"`
	Encoding  string `json:"encoding"`
	KeyLen    int    `json:"key_len"`
	ValueLen  int    `json:"value_len"`
	ValueKind string `json:"value_kind"`
	Seed      uint64 `json:"seed"`
}

// Plan is a database's life.
type Plan struct {
	Name         string  `json:"name"`
	Engine       string  `json:"engine"`
	Dir          string  `json:"dir"`
	Config       Config  `json:"config"`
	Set          DataSet `json:"set"`
	Phases       []Phase `json:"phases"`
	SettleLimitS uint64  `json:"settle_limit_s"`
	LatencyEvery uint64  `json:"latency_every"`
}

// Latency has percentiles in nanoseconds.
type Latency struct {
	PerBatch bool    `json:"per_batch"`
	Samples  uint64  `json:"samples"`
	MeanNs   float64 `json:"mean_ns"`
	StddevNs float64 `json:"stddev_ns"`
	MinNs    uint64  `json:"min_ns"`
	P50Ns    uint64  `json:"p50_ns"`
	P95Ns    uint64  `json:"p95_ns"`
	P99Ns    uint64  `json:"p99_ns"`
	P999Ns   uint64  `json:"p999_ns"`
	P9999Ns  uint64  `json:"p9999_ns"`
	MaxNs    uint64  `json:"max_ns"`
}

// Usage has differences of counters.
type Usage struct {
	CPUUserS            float64 `json:"cpu_user_s"`
	CPUSystemS          float64 `json:"cpu_system_s"`
	SwitchesVoluntary   uint64  `json:"switches_voluntary"`
	SwitchesInvoluntary uint64  `json:"switches_involuntary"`
	ReadBytes           uint64  `json:"read_bytes"`
	WriteBytes          uint64  `json:"write_bytes"`
	CancelledWriteBytes uint64  `json:"cancelled_write_bytes"`
}

// Memory has peaks of resident memory, in bytes.
type Memory struct {
	Anon    uint64 `json:"anon"`
	File    uint64 `json:"file"`
	Shmem   uint64 `json:"shmem"`
	Harness uint64 `json:"harness"`
}

// Space has bytes in a folder.
type Space struct {
	Allocated uint64 `json:"allocated"`
	Apparent  uint64 `json:"apparent"`
	Files     uint64 `json:"files"`
}

// Settled is what holds after the engine's background work was awaited.
type Settled struct {
	Seconds float64 `json:"seconds"`
	Done    bool    `json:"done"`
	Usage   Usage   `json:"usage"`
	Space   Space   `json:"space"`
}

// Point of a series: seconds since the start, and operations done by then.
type Point struct {
	Seconds float64
	Ops     uint64
}

// MarshalJSON writes a pair.
func (p Point) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]any{p.Seconds, p.Ops})
}

// PhaseResult is what a phase was found to be.
type PhaseResult struct {
	Case          string             `json:"case"`
	Ops           uint64             `json:"ops"`
	Seconds       float64            `json:"seconds"`
	OpsPerS       float64            `json:"ops_per_s"`
	UserBytes     uint64             `json:"user_bytes"`
	Latency       Latency            `json:"latency"`
	Histogram     string             `json:"histogram,omitempty"`
	Parts         map[string]Latency `json:"parts,omitempty"`
	BackgroundOps uint64             `json:"background_ops,omitempty"`
	LagS          float64            `json:"lag_s,omitempty"`
	Series        []Point            `json:"series"`
	Usage         Usage              `json:"usage"`
	Memory        Memory             `json:"memory"`
	Space         Space              `json:"space"`
	LiveBytes     uint64             `json:"live_bytes"`
	Settled       *Settled           `json:"settled"`
	Wrong         uint64             `json:"wrong"`
	WrongExamples []string           `json:"wrong_examples"`
	ReadDigest    *string            `json:"read_digest,omitempty"`
	Digest        *string            `json:"digest"`
	Stats         map[string]string  `json:"stats"`
}

// Ending is the end of a plan.
type Ending struct {
	CloseS        float64  `json:"close_s"`
	Space         Space    `json:"space"`
	Usage         Usage    `json:"usage"`
	UserBytes     uint64   `json:"user_bytes"`
	LiveBytes     uint64   `json:"live_bytes"`
	ReopenS       float64  `json:"reopen_s"`
	Wrong         uint64   `json:"wrong"`
	WrongExamples []string `json:"wrong_examples"`
}

// Event is what the driver says: exactly one of the fields is set.
type Event struct {
	Begin  *string      `json:"begin,omitempty"`
	Phase  *PhaseResult `json:"phase,omitempty"`
	End    *Ending      `json:"end,omitempty"`
	Failed *string      `json:"failed,omitempty"`
}
