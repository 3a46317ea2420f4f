package layout

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// maxClippedApart bounds the names that are compared letter by letter, in bytes: some have a million.
const maxClippedApart = 4096

// ClipApart shortens texts as Clip does, but keeps the parts in which they differ: of two layers with the same ending
// the numbers.
func ClipApart(texts []string, width int, ascii bool) []string {
	clipped := make([]string, len(texts))
	alike := make(map[string][]int)
	for i, text := range texts {
		clipped[i] = Clip(text, width, ascii)
		if clipped[i] != text {
			alike[clipped[i]] = append(alike[clipped[i]], i)
		}
	}
	for i, text := range texts { // one that was not shortened may equal one that was
		if list := alike[text]; clipped[i] == text && len(list) > 0 {
			alike[text] = append(list, i)
		}
	}
	for _, list := range alike {
		letters, differ := make([][]string, len(list)), false
		for n, i := range list {
			differ = differ || texts[i] != texts[list[0]]
			if len(texts[i]) > maxClippedApart {
				differ = false
				break
			}
			letters[n] = lettersOf(texts[i])
		}
		if !differ {
			continue
		}
		head, tail := commonEnds(letters)
		for n, i := range list {
			if Width(texts[i]) > width {
				clipped[i] = clipAround(letters[n], head, len(letters[n])-tail, width, ascii)
			}
		}
	}
	return clipped
}

// lettersOf splits a text into the units that take cells.
func lettersOf(text string) (list []string) {
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		list = append(list, g.Value())
	}
	return list
}

// commonEnds returns the length of the common prefix and suffix of all texts, in letters.
func commonEnds(texts [][]string) (head, tail int) {
	first := texts[0]
	head, tail = len(first), len(first)
	for _, text := range texts[1:] {
		n := 0
		for n < min(head, len(text)) && text[n] == first[n] {
			n++
		}
		head = n
	}
	for _, text := range texts[1:] {
		n := 0
		for n < min(tail, len(text)-head, len(first)-head) && text[len(text)-1-n] == first[len(first)-1-n] {
			n++
		}
		tail = n
	}
	return head, min(tail, len(first)-head)
}

// clipAround shortens a text to width cells so that the letters from begin to end stay, as far as there is room, and
// with them the end of the text. Blanks at its beginning stay.
func clipAround(letters []string, begin, end, width int, ascii bool) string {
	dots := "…"
	if ascii {
		dots = "..."
	}
	indent := 0
	for indent < begin && letters[indent] == " " {
		indent++
	}
	room := width - indent - 2*Width(dots)
	kept := letters[begin:end]
	for Width(strings.Join(kept, "")) > max(room, 1) && len(kept) > 1 {
		kept = kept[:len(kept)-1]
	}
	from, to, last := begin, begin+len(kept), len(letters)
	room -= Width(strings.Join(kept, ""))
	// the start shows where they differ, the end what they are
	for turn := 0; room > 0 && (from > indent || to < last); turn++ {
		switch {
		case from > indent && (turn%3 == 0 || to == last):
			from--
			room -= Width(letters[from])
		case to < last:
			last--
			room -= Width(letters[last])
		}
	}
	text := strings.Repeat(" ", indent)
	if from > indent {
		text += dots
	}
	text += strings.Join(letters[from:to], "")
	if to < last {
		text += dots
	}
	text += strings.Join(letters[last:], "")
	if Width(text) > width {
		return Clip(text, width, ascii)
	}
	return text
}
