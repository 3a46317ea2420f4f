package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the suffixes that a size may carry, in lower case and without a trailing b or ib. All are binary, as in
// the reports.
var byteUnits = map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

// Size is a flag value: a number of bytes such as 65536, 64M, 24 MB or 1.5GiB.
type Size int64

// String returns the number of bytes, or "" for 0, so that the help shows no default.
func (b *Size) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type returns what the help calls a value of the flag.
func (*Size) Type() string { return "SIZE" }

// Set reads a size as ParseSize does.
func (b *Size) Set(text string) error {
	bytes, err := ParseSize(text)
	*b = Size(bytes)
	return err
}

// ParseSize reads a number of bytes as Size does.
func ParseSize(text string) (int64, error) {
	trimmed := strings.ToLower(strings.TrimSpace(text))
	end := strings.LastIndexAny(trimmed, "0123456789.") + 1
	unit := strings.TrimSpace(trimmed[end:])
	unit = strings.TrimSuffix(unit, "b")
	unit = strings.TrimSuffix(unit, "i")
	shift, known := byteUnits[unit]
	number, err := strconv.ParseFloat(trimmed[:end], 64)
	bytes := math.Round(math.Ldexp(number, shift))
	if err != nil || !known || bytes < 1 || bytes >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a number with K, M, G or T, such as 64M", text)
	}
	return int64(bytes), nil
}
