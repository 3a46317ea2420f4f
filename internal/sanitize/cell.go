package sanitize

import (
	"strconv"
	"strings"
	"unicode"
)

// formulaSigns begin what spreadsheets calculate, those of Asian keyboards and typography as well.
const formulaSigns = "=+-@" + "\uff1d\uff0b\uff0d\uff20" + "\ufe66\ufe62\ufe63\ufe6b" + "\u2212"

// Cell is a cell of a table that spreadsheets open: it has an apostrophe before it where one would calculate it, since
// programs choose the names of their tags. Invisible characters before the sign do not matter. Numbers stay.
func Cell(cell string) string {
	bare := strings.TrimLeftFunc(cell, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Z)
	})
	before := cell[:len(cell)-len(bare)]
	if !strings.ContainsFunc(before, unicode.IsControl) && strings.IndexAny(bare, formulaSigns) != 0 {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}
