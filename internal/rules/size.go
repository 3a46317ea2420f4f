package rules

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Bound compares a size.
type Bound struct {
	Op    string // ">=", ">", "<=", "<" or "="
	Bytes uint64
}

var boundText = regexp.MustCompile(`^\s*(>=|<=|==|=|>|<)\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*$`)

// units are binary and decimal ones, as they are spelt.
var units = map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "kB": 1e3,
	"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

const unitNames = "B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000)"

// ParseBound reads a comparison such as ">= 2MiB" or "< 512". A number without a unit is bytes.
func ParseBound(text string) (Bound, error) {
	m := boundText.FindStringSubmatch(text)
	if m == nil {
		return Bound{}, fmt.Errorf(
			"size %q: write a comparison (>=, >, <=, <, =) and a number with a unit, such as \">= 2MiB\"",
			text)
	}
	bytes, err := parseBytes(m[2], m[3])
	if err != nil {
		return Bound{}, fmt.Errorf("size %q: %w", text, err)
	}
	return Bound{Op: strings.Replace(m[1], "==", "=", 1), Bytes: bytes}, nil
}

var sizeText = regexp.MustCompile(`^\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*$`)

// ParseSize reads a size such as "11.2GiB"; a number without a unit is bytes.
func ParseSize(text string) (uint64, error) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; write a number with a unit, such as 11.2GiB: %s", text, unitNames)
	}
	return parseBytes(m[1], m[2])
}

func parseBytes(number, unit string) (uint64, error) {
	factor, known := units[unit]
	if !known {
		return 0, fmt.Errorf("there is no unit %q; choose from %s", unit, unitNames)
	}
	number = strings.ReplaceAll(number, "_", "")
	if whole, err := strconv.ParseUint(number, 10, 64); err == nil && whole < 1<<53 && float64(whole)*factor < 1<<62 {
		return whole * uint64(factor), nil
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value*factor >= 1<<62 {
		return 0, fmt.Errorf("%s%s is more than any device has", number, unit)
	}
	return uint64(math.Round(value * factor)), nil
}

func (b Bound) holds(bytes uint64) bool {
	switch b.Op {
	case ">=":
		return bytes >= b.Bytes
	case ">":
		return bytes > b.Bytes
	case "<=":
		return bytes <= b.Bytes
	case "<":
		return bytes < b.Bytes
	}
	return bytes == b.Bytes
}

// boundaries are the smallest sizes from which on the answer may be another one.
func (b Bound) boundaries() []uint64 {
	switch b.Op {
	case ">=", "<":
		return []uint64{b.Bytes}
	case ">", "<=":
		return []uint64{b.Bytes + 1}
	}
	return []uint64{b.Bytes, b.Bytes + 1}
}
