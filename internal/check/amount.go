package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
)

// Units of amounts, by their names in JSON.
const (
	Bytes        = "bytes"
	BytesPerStep = "bytes/step"
	BytesPerSec  = "bytes/second"
	Percent      = "percent"
	Count        = "count"
)

// Amount is a number with its unit.
type Amount struct {
	Value float64
	Unit  string
}

// String writes an amount as tables have it.
func (a Amount) String() string {
	switch a.Unit {
	case Percent:
		return strconv.FormatFloat(math.Round(a.Value*100)/100, 'f', -1, 64) + "%"
	case Count:
		return layout.Count(uint64(a.Value))
	case BytesPerStep:
		return sizeText(a.Value) + "/step"
	case BytesPerSec:
		return sizeText(a.Value) + "/s"
	}
	return sizeText(a.Value)
}

// roundedUp writes an amount of bytes as tables have it, but never less: a limit that is written so allows it.
func (a Amount) roundedUp() string {
	for shown := a; ; shown.Value += a.Value / 20000 {
		text := shown.String()
		if limit, err := parseRate(text); err != nil || limit.Value >= a.Value {
			return text
		}
	}
}

func sizeText(bytes float64) string { return layout.Bytes(wholeBytes(bytes)) }

// wholeBytes rounds a number of bytes.
func wholeBytes(bytes float64) uint64 {
	switch {
	case !(bytes > 0):
		return 0
	case bytes >= math.MaxUint64:
		return math.MaxUint64
	}
	return uint64(math.Round(bytes))
}

// number is an amount's value in JSON, without an exponent.
func (a Amount) number() json.Number {
	digits := 3
	if a.Unit == Bytes || a.Unit == Count {
		digits = 0
	}
	return json.Number(strconv.FormatFloat(math.Round(a.Value*1000)/1000, 'f', digits, 64))
}

// parsePercent reads 5% or 2.5 %.
func parsePercent(text string) (Amount, error) {
	number, found := strings.CutSuffix(strings.TrimSpace(text), "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !found || err != nil || !(value >= 0 && value <= 1e6) {
		return Amount{}, fmt.Errorf("%q is not a percentage; write a number and %%, such as 2%%", text)
	}
	return Amount{value, Percent}, nil
}

// parseBytes reads a size; 0 is one.
func parseBytes(text string) (Amount, error) {
	number := strings.TrimRight(strings.TrimSpace(text), "KMGTkmgtiIbB ")
	if value, err := strconv.ParseFloat(number, 64); err == nil && value == 0 {
		return Amount{0, Bytes}, nil
	}
	bytes, err := cli.ParseSize(text)
	if err != nil {
		return Amount{}, fmt.Errorf("%q is not a size; write a number with KiB, MiB, GiB or TiB, such as 10GiB", text)
	}
	return Amount{float64(bytes), Bytes}, nil
}

// periods are what growth is divided by.
var periods = map[string]string{"step": BytesPerStep, "iteration": BytesPerStep, "s": BytesPerSec,
	"second": BytesPerSec}

// parseRate reads a size, which may be that of each step or second.
func parseRate(text string) (Amount, error) {
	size, period, divided := strings.Cut(text, "/")
	amount, err := parseBytes(size)
	if err != nil || !divided {
		return amount, err
	}
	if amount.Unit = periods[strings.TrimSpace(period)]; amount.Unit == "" {
		return Amount{}, fmt.Errorf("%q: growth is counted per step or per second, such as 1MiB/step", text)
	}
	return amount, nil
}

// errReserved is why no gate compares what an allocator holds.
var errReserved = errors.New("reserved memory is not compared: what a caching allocator holds depends on the order of requests and on the device's free memory, and may differ by a tenth between runs that do the same; use peak (allocated bytes) or requested")
