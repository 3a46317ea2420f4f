package layout

import "github.com/clipperhouse/displaywidth"

// widestCharacter is the maximum width of a character in cells.
const widestCharacter = 2

// Width returns the width of a text in cells of a terminal: two for each East Asian wide character and most emoji, none
// for a combining mark.
func Width(s string) int { return displaywidth.String(s) }

// Clip shortens text to at most width cells, removing the middle: both ends of a path are more informative.
func Clip(s string, width int, ascii bool) string {
	n := Width(s)
	if n <= width {
		return s
	}
	dots := "…"
	if ascii {
		dots = "..."
	}
	keep := width - Width(dots)
	if keep < widestCharacter {
		head, _ := cut(s, width)
		return head
	}
	head, _ := cut(s, keep/3)
	return head + dots + end(s, n, keep-Width(head))
}

// cut returns the first characters of a text, at most width cells, and the rest. It reads only these: some words have a
// million.
func cut(text string, width int) (head, rest string) {
	at := 0
	for g := displaywidth.StringGraphemes(text); g.Next(); at += len(g.Value()) {
		if width -= g.Width(); width < 0 {
			return text[:at], text[at:]
		}
	}
	return text, ""
}

// end returns the last characters of a text of n cells, at most width of them.
func end(text string, n, width int) string {
	at := 0
	for g := displaywidth.StringGraphemes(text); n > width && g.Next(); {
		n -= g.Width()
		at += len(g.Value())
	}
	return text[at:]
}
