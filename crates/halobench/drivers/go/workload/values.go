package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
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
)

var valueKinds = map[string]ValueKind{
	"half": Half, "incompressible": Incompressible, "ramp": Ramp, "text": Text, "json": JSON,
}

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
}

// NewValues makes values of size bytes.
func NewValues(kind string, size int, seed uint64) (*Values, error) {
	k, known := valueKinds[kind]
	if !known {
		return nil, fmt.Errorf("this driver knows no value kind %q", kind)
	}
	poolLen := min(max(1024*size, 1<<20), 64<<20)
	pieces := max(poolLen/max(size, 1), 1)
	poolSeed := Stream(seed, 3)
	var pool []byte
	switch k {
	case Ramp:
		pool = make([]byte, size+256)
		for i := range pool {
			pool[i] = byte(i)
		}
	case Incompressible:
		pool = randomBytes(make([]byte, 0, pieces*size+8), pieces*size, poolSeed, new(uint64))
	case Half:
		pool = make([]byte, 0, pieces*size+8)
		draw := new(uint64)
		half := (size + 1) / 2
		for range pieces {
			start := len(pool)
			pool = randomBytes(pool, start+half, poolSeed, draw)
			pool = append(pool, pool[start:start+size-half]...)
		}
	case Text:
		pool = textPool(pieces*size, poolSeed)
	case JSON:
		pool = jsonPool(pieces*size, poolSeed)
	}
	whole := 8
	if k == Text || k == JSON {
		whole = 16
	}
	return &Values{
		kind: k, size: size, salt: Stream(seed, 2), versioned: k != Ramp && size >= whole,
		tagLen: min(whole, size), pieces: uint64(pieces), pool: pool,
	}, nil
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

func (v *Values) putTag(tag uint64, head *[16]byte) []byte {
	if v.kind == Text || v.kind == JSON {
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
	copy(out, v.piece(tag))
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
	tag := v.tag(id, version)
	var head [16]byte
	want := v.putTag(tag, &head)
	n := len(want)
	return bytes.Equal(value[:n], want) && bytes.Equal(value[n:], v.piece(tag)[n:])
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
	if v.kind == Text || v.kind == JSON {
		var ok bool
		if tag, ok = unhex(value[:16]); !ok {
			return Wrong, 0
		}
	} else {
		tag = binary.LittleEndian.Uint64(value)
	}
	if !bytes.Equal(value[v.tagLen:], v.piece(tag)[v.tagLen:]) {
		return Wrong, 0
	}
	return Versioned, Unmix(tag) - Mix(id+v.salt)
}
