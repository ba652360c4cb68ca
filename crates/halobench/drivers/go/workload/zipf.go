package workload

import (
	"math"
	"math/bits"
)

// theta is the skew of the zipfian pattern.
const theta = 0.99

// Every product below that a sum follows is converted explicitly: that forbids the compiler to fuse the two.

// Zipf draws ranks in 0..n, rank r with a probability close to proportional to (r+1)^-theta.
type Zipf struct {
	n                                 uint64
	alpha, eta, zetaN, halfPowOfTheta float64
}

// NewZipf is a distribution over n >= 1 ranks. Costs one power a rank.
func NewZipf(n uint64) Zipf {
	var zetaN, zeta2 float64
	for i := uint64(1); i <= n; i++ {
		zetaN += power(float64(i), -theta)
		if i == 2 {
			zeta2 = zetaN
		}
	}
	one := 1.0
	t := float64(theta)
	eta := (1.0 - exp((one-t)*ln(2.0/float64(n)))) / (1.0 - zeta2/zetaN)
	return Zipf{n, one / (one - t), eta, zetaN, power(2.0, -theta)}
}

// Rank is the rank for a draw.
func (z *Zipf) Rank(draw uint64) uint64 {
	u := Unit(draw)
	uz := float64(u * z.zetaN)
	if uz < 1.0 || z.n < 2 {
		return 0
	}
	if uz < 1.0+z.halfPowOfTheta || z.n < 3 {
		return 1
	}
	base := float64(z.eta*u) - z.eta + 1.0
	return min(uint64(float64(z.n)*exp(float64(z.alpha*ln(base)))), z.n-1)
}

// Permutation is a fixed pseudo-random permutation of 0..n.
type Permutation struct {
	n    uint64
	bits int
	adds [3]uint64
}

// NewPermutation is the one that seed chooses.
func NewPermutation(n, seed uint64) Permutation {
	return Permutation{n, bits.Len64(n - 1), [3]uint64{At(seed, 0), At(seed, 1), At(seed, 2)}}
}

// Apply says where i < n goes.
func (p *Permutation) Apply(i uint64) uint64 {
	if p.bits == 0 {
		return 0
	}
	mask := uint64(math.MaxUint64) >> (64 - p.bits)
	shift := (p.bits + 1) / 2
	for {
		for _, add := range p.adds {
			i = (i + add) & mask
			i = (i * golden) & mask
			i ^= i >> shift
		}
		if i < p.n {
			return i
		}
	}
}

func power(a, b float64) float64 { return exp(float64(b * ln(a))) }

// ln is the natural logarithm of a positive normal number, by generators.md.
func ln(x float64) float64 {
	b := math.Float64bits(x)
	e := int64(b>>52&0x7ff) - 1023
	m := math.Float64frombits(b&0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000)
	if m > math.Sqrt2 {
		m /= 2
		e++
	}
	s := (m - 1) / (m + 1)
	q := float64(s * s)
	sum := 0.0
	for k := 21; k >= 1; k -= 2 {
		sum = float64(sum*q) + 1.0/float64(k)
	}
	double := float64(2 * s)
	return float64(float64(e)*math.Ln2) + float64(double*sum)
}

// exp is e to the y, for |y| < 700, by generators.md.
func exp(y float64) float64 {
	k := math.Floor(y/math.Ln2 + 0.5)
	r := y - float64(k*math.Ln2)
	sum := 1.0
	for i := 14; i >= 1; i-- {
		sum = 1 + float64(sum*r)/float64(i)
	}
	if k < -1022 {
		return 0
	}
	return sum * math.Float64frombits(uint64(int64(k)+1023)<<52)
}
