package export

import (
	"path"
	"strconv"
	"strings"
)

const dots = "…"

// labels are the possible labels of a frame's box, the longest first: with lines for the user's own files, with
// functions elsewhere.
func (f *frame) labels() []string {
	place := f.place()
	switch {
	case f.origin == ofUser && f.line > 0 && place != "":
		line := ":" + strconv.Itoa(f.line)
		short := path.Base(f.file) + line
		return distinct(place+" "+f.function, short+" "+f.function, short, line)
	case f.python && place != "":
		return distinct(f.function+" "+place, f.function)
	case place != "":
		return distinct(f.function+" "+place, f.function, lastName(f.function, 2), lastName(f.function, 1))
	}
	return distinct(f.function, lastName(f.function, 2), lastName(f.function, 1))
}

// distinct drops names that repeat the one before.
func distinct(names ...string) []string {
	list := names[:1]
	for _, name := range names[1:] {
		if name != list[len(list)-1] {
			list = append(list, name)
		}
	}
	return list
}

// lastName is the last parts of a C++ or Rust name, or of one with a word and a colon before it: template arguments and
// operators stay whole.
func lastName(function string, parts int) string {
	nested := 0
	for i := len(function) - 1; i > 0; i-- {
		switch function[i] {
		case '>', ')', '}', ']':
			nested++
		case '<', '(', '{', '[':
			nested--
		case ':', ' ':
			if nested != 0 || function[i-1] != ':' || i+1 == len(function) {
				continue
			}
			if parts--; parts == 0 || function[i] == ' ' {
				return function[i+1:]
			}
		}
	}
	return function
}

// fitLabel returns the longest of the names that fits a box, with the size if there is room for both, or the beginning
// of the last name; "" if there is no room for that. The script in the picture does the same.
func fitLabel(names []string, size string, width float64) string {
	room := int((width - flamePad) / flameChar)
	for _, name := range names {
		if both := name + " · " + size; columns(both) <= room {
			return both
		}
		if columns(name) <= room {
			return name
		}
	}
	if room < 4 {
		return ""
	}
	var text strings.Builder
	used := 0
	for _, r := range names[len(names)-1] {
		if used += runeColumns(r); used > room-1 {
			break
		}
		text.WriteRune(r)
	}
	return text.String() + dots
}

func columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is a conservative estimate: most characters outside of alphabets are twice as wide.
func runeColumns(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

// clipMiddle shortens text to a number of characters.
func clipMiddle(text string, room int) string {
	runes := []rune(text)
	if len(runes) <= room {
		return text
	}
	head := room / 3
	return string(runes[:head]) + dots + string(runes[len(runes)-(room-1-head):])
}
