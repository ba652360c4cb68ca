package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
)

// ValueKind is what values are made of.
type ValueKind int

// The kinds, by the names of the protocol.
const (
	Half ValueKind = iota
	Incompressible
	Ramp
	Text
	JSON
	Prose
)

var valueKinds = map[string]ValueKind{
	"half": Half, "incompressible": Incompressible, "ramp": Ramp, "text": Text, "json": JSON, "prose": Prose,
}

// isText tells whether it is printable, its tag too.
func (k ValueKind) isText() bool { return k == Text || k == JSON || k == Prose }

// ProseFile is the file that prose is read from: a copy of crates/halobench/assets/prose.txt.
var ProseFile = "prose.txt"

const (
	proseLen = 131_072
	// poolMax is the most bytes of a pool, and of a value that is one piece of it.
	poolMax = 64 << 20
)

// Verdict is what a value read turned out to be.
type Verdict int

// The verdicts.
const (
	// Wrong: not a value of this key.
	Wrong Verdict = iota
	// Unversioned: a value of the key, from which the version cannot be told.
	Unversioned
	// Versioned: the value of the key at a version.
	Versioned
)

// Values makes and checks values.
type Values struct {
	kind      ValueKind
	size      int
	salt      uint64
	versioned bool
	// Bytes of a tag that a value has room for.
	tagLen int
	pieces uint64
	pool   []byte
	// If not 0, the pool is a ring, and values begin at multiples of this.
	ringStep uint64
}

// NewValues makes values of size bytes.
func NewValues(kind string, size int, seed uint64) (*Values, error) {
	k, known := valueKinds[kind]
	if !known {
		return nil, fmt.Errorf("this driver knows no value kind %q", kind)
	}
	var ringStep uint64
	switch {
	case k == Prose:
		ringStep = 1
	case k != Ramp && size > poolMax:
		ringStep = 8
	}
	piece := min(size, poolMax)
	pieces := max(min(max(1024*piece, 1<<20), poolMax)/max(piece, 1), 1)
	pool, err := newPool(k, size, piece, pieces, Stream(seed, 3))
	if err != nil {
		return nil, err
	}
	whole := 8
	if k.isText() {
		whole = 16
	}
	return &Values{
		kind: k, size: size, salt: Stream(seed, 2), versioned: k != Ramp && size >= whole,
		tagLen: min(whole, size), pieces: uint64(pieces), pool: pool, ringStep: ringStep,
	}, nil
}

func newPool(k ValueKind, size, piece, pieces int, seed uint64) ([]byte, error) {
	switch k {
	case Ramp:
		pool := make([]byte, size+256)
		for i := range pool {
			pool[i] = byte(i)
		}
		return pool, nil
	case Prose:
		pool, err := os.ReadFile(ProseFile)
		if err == nil && len(pool) != proseLen {
			err = fmt.Errorf("it has %d bytes, not %d", len(pool), proseLen)
		}
		if err != nil {
			return nil, fmt.Errorf("reading prose: %w", err)
		}
		return pool, nil
	case Half:
		pool := make([]byte, 0, pieces*piece+8)
		draw := new(uint64)
		half := (piece + 1) / 2
		for range pieces {
			start := len(pool)
			pool = randomBytes(pool, start+half, seed, draw)
			pool = append(pool, pool[start:start+piece-half]...)
		}
		return pool, nil
	case Text:
		return textPool(pieces*piece, seed), nil
	case JSON:
		return jsonPool(pieces*piece, seed), nil
	default:
		return randomBytes(make([]byte, 0, pieces*piece+8), pieces*piece, seed, new(uint64)), nil
	}
}

// randomBytes extends pool to a length with draws, little endian, and drops the rest of the last one.
func randomBytes(pool []byte, to int, seed uint64, draw *uint64) []byte {
	for len(pool) < to {
		pool = binary.LittleEndian.AppendUint64(pool, At(seed, *draw))
		*draw++
	}
	return pool[:to]
}

// Size is the number of bytes of a value.
func (v *Values) Size() int { return v.size }

// Memory is the number of bytes held.
func (v *Values) Memory() int { return cap(v.pool) }

func (v *Values) tag(id, version uint64) uint64 {
	if !v.versioned {
		version = 0
	}
	return Mix(Mix(id+v.salt) + version)
}

func (v *Values) piece(tag uint64) []byte {
	i := int(Reduce(Mix(tag), v.pieces)) * v.size
	return v.pool[i : i+v.size]
}

// ringStart is where in the ring the value with this tag begins.
func (v *Values) ringStart(tag uint64) int {
	return int(v.ringStep * Reduce(Mix(tag), uint64(len(v.pool))/v.ringStep))
}

func (v *Values) putTag(tag uint64, head *[16]byte) []byte {
	if v.kind.isText() {
		putHex(tag, head[:])
	} else {
		binary.LittleEndian.PutUint64(head[:], tag)
	}
	return head[:v.tagLen]
}

// Fill writes the value of id at a version into out, which has Size bytes.
func (v *Values) Fill(id, version uint64, out []byte) {
	if v.kind == Ramp {
		copy(out, v.pool[id%256:])
		return
	}
	tag := v.tag(id, version)
	if v.ringStep == 0 {
		copy(out, v.piece(tag))
	} else {
		n := copy(out, v.pool[v.ringStart(tag):])
		for n < v.size {
			n += copy(out[n:], v.pool)
		}
	}
	var head [16]byte
	copy(out, v.putTag(tag, &head))
}

// Is tells whether value is that of id at a version.
func (v *Values) Is(id, version uint64, value []byte) bool {
	if v.kind == Ramp {
		i := int(id % 256)
		return bytes.Equal(value, v.pool[i:i+v.size])
	}
	if len(value) != v.size {
		return false
	}
	return v.matches(v.tag(id, version), value)
}

// matches tells whether a value, of the right length, is the one with this tag.
func (v *Values) matches(tag uint64, value []byte) bool {
	var head [16]byte
	want := v.putTag(tag, &head)
	n := len(want)
	if !bytes.Equal(value[:n], want) {
		return false
	}
	if v.ringStep == 0 {
		return bytes.Equal(value[n:], v.piece(tag)[n:])
	}
	at := (v.ringStart(tag) + n) % len(v.pool)
	for n < v.size {
		m := min(v.size-n, len(v.pool)-at)
		if !bytes.Equal(value[n:n+m], v.pool[at:at+m]) {
			return false
		}
		at, n = 0, n+m
	}
	return true
}

// Digest is the digest of the first value of id.
func (v *Values) Digest(id uint64) uint64 {
	if v.kind == Ramp || v.size < 24 {
		value := make([]byte, v.size)
		v.Fill(id, 0, value)
		return Digest(value)
	}
	// The ends are all that it takes, and the tag is within the first sixteen bytes.
	tag := v.tag(id, 0)
	var head [16]byte
	v.putTag(tag, &head)
	var last [8]byte
	if v.ringStep == 0 {
		copy(last[:], v.piece(tag)[v.size-8:])
	} else {
		at := v.ringStart(tag) + v.size - 8
		for i := range last {
			last[i] = v.pool[(at+i)%len(v.pool)]
		}
	}
	return digestOfEnds(binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(last[:]), v.size)
}

// Digest is the digest of one value that was read; digests are added up.
func Digest(value []byte) uint64 {
	n := len(value)
	if n >= 8 {
		return digestOfEnds(binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[n-8:]), n)
	}
	var padded [8]byte
	copy(padded[:], value)
	both := binary.LittleEndian.Uint64(padded[:])
	return digestOfEnds(both, both, n)
}

func digestOfEnds(first, last uint64, size int) uint64 {
	return Mix(first + Mix(last) + uint64(size))
}

// Read finds out what a value of id is, and its version if that can be told.
func (v *Values) Read(id uint64, value []byte) (Verdict, uint64) {
	if len(value) != v.size {
		return Wrong, 0
	}
	if !v.versioned {
		if v.Is(id, 0, value) {
			return Unversioned, 0
		}
		return Wrong, 0
	}
	var tag uint64
	if v.kind.isText() {
		var ok bool
		if tag, ok = unhex(value[:16]); !ok {
			return Wrong, 0
		}
	} else {
		tag = binary.LittleEndian.Uint64(value)
	}
	if !v.matches(tag, value) {
		return Wrong, 0
	}
	return Versioned, Unmix(tag) - Mix(id+v.salt)
}
