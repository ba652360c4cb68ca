package workload

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Encoding is how ids become bytes.
type Encoding int

// The encodings, by the names of the protocol.
const (
	Ordered Encoding = iota
	Hashed
	Timestamp
	UUID
	Compat
)

var encodings = map[string]Encoding{
	"ordered": Ordered, "hashed": Hashed, "timestamp": Timestamp, "uuid": UUID, "compat": Compat,
}

const (
	timestampBase = 1_700_000_000_000_000
	versionMask   = 0xF000
	variantMask   = 0xC000_0000_0000_0000
	digits        = "0123456789abcdef"
)

// Keys is an encoding with its size and salt.
type Keys struct {
	encoding Encoding
	size     int
	salt     uint64
}

// NewKeys makes keys of size bytes; fails where they cannot hold every id below n.
func NewKeys(encoding string, size int, n, seed uint64) (Keys, error) {
	e, known := encodings[encoding]
	if !known {
		return Keys{}, fmt.Errorf("this driver knows no key encoding %q", encoding)
	}
	least := 8
	switch e {
	case Ordered:
		least = 16 - bits.LeadingZeros64(max(n, 1))/4
	case UUID:
		least = 16
	}
	if size < least || size > 511 {
		return Keys{}, fmt.Errorf("keys of %d bytes: this pattern needs %d to 511 bytes", size, least)
	}
	return Keys{e, size, Stream(seed, 1)}, nil
}

// Size is the number of bytes of a key.
func (k *Keys) Size() int { return k.size }

// Encode writes the key of id into out, which has Size bytes.
func (k *Keys) Encode(id uint64, out []byte) {
	switch {
	case k.encoding == UUID:
		k.encodeUUID(id, out)
	case k.encoding == Ordered || k.size >= 16:
		hexPadded(k.SortKey(id), out)
	default:
		// All 64 bits are needed, and their digits do not fit.
		pad := len(out) - 8
		for i := range out[:pad] {
			out[i] = '0'
		}
		binary.BigEndian.PutUint64(out[pad:], k.SortKey(id))
	}
}

// Decode is the id whose key this is, if it is one. The id may lie outside the data set.
func (k *Keys) Decode(key []byte) (uint64, bool) {
	if len(key) != k.size {
		return 0, false
	}
	if k.encoding == UUID {
		return k.decodeUUID(key)
	}
	var x uint64
	ok := true
	if k.encoding == Ordered || k.size >= 16 {
		x, ok = unhexPadded(key)
	} else {
		pad := len(key) - 8
		for _, b := range key[:pad] {
			ok = ok && b == '0'
		}
		x = binary.BigEndian.Uint64(key[pad:])
	}
	if !ok {
		return 0, false
	}
	switch k.encoding {
	case Hashed:
		return Unmix(x) - k.salt, true
	case Timestamp:
		if x < timestampBase {
			return 0, false
		}
		id := (x - timestampBase) / 1000
		return id, k.timestamp(id) == x
	case Compat:
		return bits.ReverseBytes64(x), true
	default:
		return x, true
	}
}

// InOrder tells whether ids in order are keys in order.
func (k *Keys) InOrder() bool { return k.encoding == Ordered || k.encoding == Timestamp }

// SortKey orders ids as their keys are ordered (UUIDs, by their first half).
func (k *Keys) SortKey(id uint64) uint64 {
	switch k.encoding {
	case Hashed:
		return Mix(id + k.salt)
	case Timestamp:
		return k.timestamp(id)
	case UUID:
		hi, _ := k.uuid(id)
		return hi
	case Compat:
		return bits.ReverseBytes64(id)
	default:
		return id
	}
}

func (k *Keys) timestamp(id uint64) uint64 {
	return timestampBase + id*1000 + Reduce(At(k.salt, id), 1000)
}

func (k *Keys) uuid(id uint64) (hi, lo uint64) {
	hi = (Mix(id+k.salt) &^ versionMask) | 0x4000
	lo = (Mix(id^k.salt) &^ variantMask) | 0x8000_0000_0000_0000
	return hi, lo
}

func (k *Keys) encodeUUID(id uint64, out []byte) {
	var raw [16]byte
	hi, lo := k.uuid(id)
	binary.BigEndian.PutUint64(raw[:], hi)
	binary.BigEndian.PutUint64(raw[8:], lo)
	at := copy(out, raw[:])
	if len(out) >= 36 {
		at = 0
		for i, b := range raw {
			if i == 4 || i == 6 || i == 8 || i == 10 {
				out[at] = '-'
				at++
			}
			out[at], out[at+1] = digits[b>>4], digits[b&15]
			at += 2
		}
	}
	for i := at; i < len(out); i++ {
		out[i] = '0'
	}
}

func (k *Keys) decodeUUID(key []byte) (uint64, bool) {
	var hi, lo uint64
	if len(key) < 36 {
		hi, lo = binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[8:])
	} else {
		var plain [32]byte
		n := 0
		for _, b := range key[:36] {
			if b != '-' && n < len(plain) {
				plain[n] = b
				n++
			}
		}
		var okHi, okLo bool
		hi, okHi = unhex(plain[:16])
		lo, okLo = unhex(plain[16:])
		if n != len(plain) || !okHi || !okLo {
			return 0, false
		}
	}
	// The variant's two bits replaced two bits of the low half's hash: try the four.
	for top := uint64(0); top < 4; top++ {
		id := Unmix((lo&^variantMask)|top<<62) ^ k.salt
		if h, l := k.uuid(id); id < 1<<32 && h == hi && l == lo {
			return id, true
		}
	}
	return 0, false
}

// putHex writes 16 lower-case digits of x, eight at a time in a register.
func putHex(x uint64, out []byte) {
	_ = out[15]
	binary.BigEndian.PutUint64(out, eight(x>>32))
	binary.BigEndian.PutUint64(out[8:], eight(x&0xFFFFFFFF))
}

// eight spreads the nibbles to bytes, then adds '0', and 39 more where the nibble is above 9.
func eight(n uint64) uint64 {
	n = (n | n<<16) & 0x0000_FFFF_0000_FFFF
	n = (n | n<<8) & 0x00FF_00FF_00FF_00FF
	n = (n | n<<4) & 0x0F0F_0F0F_0F0F_0F0F
	above9 := ((n + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101
	return n + 0x3030_3030_3030_3030 + above9*39
}

func hexPadded(x uint64, out []byte) {
	n := len(out)
	if n == 16 {
		putHex(x, out)
		return
	}
	var all [16]byte
	putHex(x, all[:])
	if n < 16 {
		copy(out, all[16-n:])
		return
	}
	for i := range out[:n-16] {
		out[i] = '0'
	}
	copy(out[n-16:], all[:])
}

func unhex(text []byte) (uint64, bool) {
	var x uint64
	for _, b := range text {
		switch {
		case b >= '0' && b <= '9':
			x = x<<4 | uint64(b-'0')
		case b >= 'a' && b <= 'f':
			x = x<<4 | uint64(b-'a'+10)
		default:
			return 0, false
		}
	}
	return x, true
}

func unhexPadded(key []byte) (uint64, bool) {
	pad := max(len(key)-16, 0)
	for _, b := range key[:pad] {
		if b != '0' {
			return 0, false
		}
	}
	return unhex(key[pad:])
}
