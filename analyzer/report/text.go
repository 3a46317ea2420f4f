package report

import (
	"strconv"
)

var binaryUnits = [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// SizeText writes a size in binary units with three or four digits: 512 B, 1.50 GiB, 23.4 MiB, 640.0 KiB.
func SizeText(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(binaryUnits)-1 { // what would be rounded up to 1024.0 belongs to the next unit
		value /= 1024
		unit++
	}
	digits := 1
	if value < 9.995 {
		digits = 2
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + binaryUnits[unit]
}

// Count formats a number with its singular or plural noun.
func Count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(n, 10) + " " + many
}

func Number(n uint64) string { return strconv.FormatUint(n, 10) }
