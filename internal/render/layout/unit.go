package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// Unit is the unit of sizes that are printed without one.
type Unit string

const (
	// UnitB is a byte.
	UnitB Unit = "B"
	// UnitMiB is 1,048,576 bytes.
	UnitMiB Unit = "MiB"
	// UnitMB is 1,000,000 bytes; sizes are whole numbers of them, halves rounded to even.
	UnitMB Unit = "MB"
)

// Units lists all of them.
func Units() []string { return []string{string(UnitMB), string(UnitMiB), string(UnitB)} }

// ParseUnit finds a unit by its name.
func ParseUnit(name string) (Unit, error) {
	for _, unit := range Units() {
		if name == unit {
			return Unit(unit), nil
		}
	}
	return "", fmt.Errorf("there is no unit %q; choose from %s", name, strings.Join(Units(), ", "))
}

// Words names the unit in a sentence.
func (u Unit) Words() string {
	switch u {
	case UnitMB:
		return "MB (1000000 bytes)"
	case UnitMiB:
		return "MiB (1048576 bytes)"
	}
	return "bytes"
}

// UnitWriter writes a size without its unit.
type UnitWriter func(uint64) string

// Exact formats sizes for programs: in MiB with three decimals, which distinguish blocks.
func (u Unit) Exact(n uint64) string {
	switch u {
	case UnitMB:
		return u.Whole(n)
	case UnitMiB:
		thousandths := halfEven(n>>20*1000, n&(1<<20-1)*1000, 1<<20)
		return fmt.Sprintf("%d.%03d", thousandths/1000, thousandths%1000)
	}
	return strconv.FormatUint(n, 10)
}

// Whole writes sizes in whole numbers.
func (u Unit) Whole(n uint64) string {
	switch u {
	case UnitMB:
		n = halfEven(0, n, 1_000_000)
	case UnitMiB:
		n = halfEven(0, n, 1<<20)
	}
	return strconv.FormatUint(n, 10)
}

// halfEven adds n/unit to base, rounded, a half to the even number.
func halfEven(base, n, unit uint64) uint64 {
	base += n / unit
	if rest := n % unit; rest > unit/2 || rest == unit/2 && base%2 == 1 {
		base++
	}
	return base
}
