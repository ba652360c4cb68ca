// Package workload makes keys, values and orders of operations as docs/lab/generators.md says, to the bit, and knows
// what must be in a database after them.
package workload

import "math/bits"

// golden is 2^64 divided by the golden ratio, made odd: SplitMix64's increment.
const golden = 0x9E3779B97F4A7C15

// Mix is SplitMix64's finalizer.
func Mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// Unmix inverts Mix.
func Unmix(z uint64) uint64 {
	z = (z ^ (z >> 31) ^ (z >> 62)) * 0x319642B2D24D8EC3
	z = (z ^ (z >> 27) ^ (z >> 54)) * 0x96DE1B173F119089
	return z ^ (z >> 30) ^ (z >> 60)
}

// At is draw number j of the stream seed.
func At(seed, j uint64) uint64 { return Mix(seed + (j+1)*golden) }

// Stream is the seed of the stream number s below a run's seed.
func Stream(seed, s uint64) uint64 { return Mix(seed ^ Mix(s*golden)) }

// Reduce maps a draw to 0..n.
func Reduce(draw, n uint64) uint64 {
	hi, _ := bits.Mul64(draw, n)
	return hi
}

// Unit maps a draw to [0, 1) with 53 bits.
func Unit(draw uint64) float64 { return float64(draw>>11) * (1.0 / (1 << 53)) }
