package layout

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
)

// Bytes writes a size in binary units with three or four digits: 512 B, 1.50 GiB, 23.4 MiB, 640.0 KiB.
func Bytes(n uint64) string { return report.SizeText(n) }

// SignedBytes formats a difference of sizes, always with its sign: +1.50 GiB, -512 B; "0 B" if there is none.
func SignedBytes(n int64) string {
	switch {
	case n > 0:
		return "+" + Bytes(uint64(n))
	case n < 0:
		return "-" + Bytes(-uint64(n))
	}
	return "0 B"
}

// Count writes a number with thousands separated: 1,234,567.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// SignedCount writes a difference of counts, always with its sign.
func SignedCount(n int64) string {
	switch {
	case n > 0:
		return "+" + Count(uint64(n))
	case n < 0:
		return "-" + Count(-uint64(n))
	}
	return "0"
}

// Plural writes a count with its noun.
func Plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// IsAre is the verb for so many.
func IsAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Duration formats nanoseconds for reading: 740 ns, 1.2 ms, 8.213 s, 4 min 03 s, 2 h 05 min.
func Duration(ns int64) string {
	switch {
	case ns < 0:
		return "-" + Duration(-max(ns, -1<<62))
	case ns < 1e3:
		return fmt.Sprintf("%d ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f us", float64(ns)/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	case ns < 120e9:
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	case ns < 7200e9:
		return fmt.Sprintf("%d min %02d s", ns/60e9, ns/1e9%60)
	}
	return fmt.Sprintf("%d h %02d min", ns/3600e9, ns/60e9%60)
}

// Moment writes a time since the start of the trace.
func Moment(ns int64) string { return "+" + Duration(ns) }

// Tenths divides 1000 tenths of a percent among values in proportion, by the method of the largest remainder, so that a
// printed column adds up to 100.0. All zero values give zeros.
func Tenths(values []uint64) []int {
	const whole = 1000
	shares := make([]int, len(values))
	values, sum := summable(values)
	if sum == 0 {
		return shares
	}
	remainders := make([]uint64, len(values))
	left := whole
	for i, v := range values {
		hi, lo := bits.Mul64(v, whole)
		q, r := bits.Div64(hi%sum, lo, sum)
		shares[i], remainders[i] = int(q), r
		left -= int(q)
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] {
		shares[i]++
	}
	return shares
}

// summable returns the values with their sum, all of them scaled down if the sum does not fit, which is possible only
// in a damaged trace.
func summable(values []uint64) (scaled []uint64, sum uint64) {
	for _, v := range values {
		var carry uint64
		if sum, carry = bits.Add64(sum, v, 0); carry != 0 {
			scaled = make([]uint64, len(values))
			for i, v := range values {
				scaled[i] = v >> 32
			}
			return summable(scaled)
		}
	}
	return values, sum
}

// Percent writes tenths of a percent.
func Percent(tenths int) string { return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10) }

// Ratio writes how many times as much something is, with decimals below ten: "4.3 times".
func Ratio(ratio float64, decimals int) string {
	if ratio >= 9.95 {
		decimals = 0
	}
	return fmt.Sprintf("%.*f times", decimals, ratio)
}

// PercentOf writes a single part of a whole, rounded to the nearest tenth.
func PercentOf(part, whole uint64) string {
	if whole == 0 {
		return "0.0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// BytesOrDash writes a size, and a dash for nothing.
func BytesOrDash(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return Bytes(bytes)
}

// ExactBytes writes all digits.
func ExactBytes(n uint64) string { return Count(n) + " B" }

// Seconds writes nanoseconds without rounding them.
func Seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9)
}

// Number is a number as programs read it: digits and nothing else.
func Number[T uint64 | int64 | int16](n T) string { return fmt.Sprint(n) }

// UpperFirst writes the first letter in upper case, which must be one of ASCII.
func UpperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// LowerFirst writes the first letter in lower case, which must be one of ASCII.
func LowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
