package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"memtrace/analyzer/render"
	"memtrace/internal/visible"
)

// holderText shows holders in lines of a width in columns.
type holderText struct {
	strings.Builder
	width int
}

// Columns of what stands beside and below a holder's bytes.
const (
	holderBytes  = 10
	holderIndent = holderBytes + 2
	holderLabel  = 13 // of "allocated at "
)

// holderSites is how many places are listed of a holder.
const holderSites = 3

func (t *holderText) report(r *referrersReport, leftOut uint64) {
	if len(r.Holders) == 0 {
		t.WriteString("No CUDA tensor was found.\n")
		return
	}
	for i := range r.Holders {
		t.holder(&r.Holders[i])
	}
	if leftOut > 0 {
		t.lines("", 0, fmt.Sprintf("%s more rows were too long to be sent.", render.Count(leftOut)), " ")
	}
	if r.Late {
		t.lines("", 0, "Time ran out before the search ended: ways that begin with ? go on.", " ")
	}
}

func (t *holderText) holder(h *placedHolder) {
	t.lines(fmt.Sprintf("%*s  ", holderBytes, render.Bytes(h.Bytes)), holderIndent, h.Path, "")
	shape := strings.ReplaceAll(fmt.Sprint(h.Shape), " ", ", ")
	what := fmt.Sprintf("%s %s on %s", h.DType, shape, h.Device)
	if h.Tensors != 1 {
		what = fmt.Sprintf("%s tensors, the largest %s", render.Count(h.Tensors), what)
	}
	if h.GraphNodes > 0 {
		what += fmt.Sprintf("; keeps an autograd graph of %s nodes", render.Count(h.GraphNodes))
		if h.GraphBytes > 0 {
			what += fmt.Sprintf(" with %s saved", render.Bytes(h.GraphBytes))
		}
	}
	indent := strings.Repeat(" ", holderIndent)
	t.lines(indent, holderIndent, what, " ")
	for i, site := range h.Sites {
		label := strings.Repeat(" ", holderLabel)
		if i == 0 {
			label = "allocated at "
		}
		if i == holderSites && len(h.Sites) > holderSites+1 {
			t.lines(indent+label, holderIndent+holderLabel, fmt.Sprintf("and at %d more places", len(h.Sites)-holderSites), " ")
			break
		}
		t.lines(indent+label, holderIndent+holderLabel, site.text(len(h.Sites) > 1), " ")
	}
	t.lines(indent+"held by      ", holderIndent+holderLabel, h.Types, " ")
}

func (s holderSite) text(several bool) string {
	text := s.Site
	if text == "" {
		text = "a place that the trace does not know"
	}
	if several {
		text += fmt.Sprintf(" (%d of them)", s.Storages)
	}
	return text
}

// lines writes a text behind a label, in as many lines as it takes: it is broken at a separator where there is one, and
// anywhere else where there is none.
func (t *holderText) lines(label string, indent int, text, separator string) {
	room := max(t.width-indent, 20)
	rest := []rune(visible.Text(text))
	for first := true; first || len(rest) > 0; first = false {
		line := rest
		if len(rest) > room {
			line = rest[:room]
			if at := strings.LastIndex(string(rest[:room+1]), " "); separator == " " && at > 0 {
				line = rest[:utf8.RuneCountInString(string(rest[:room+1])[:at])]
			}
		}
		if !first {
			label = strings.Repeat(" ", indent)
		}
		fmt.Fprintf(t, "%s%s\n", label, string(line))
		rest = []rune(strings.TrimLeft(string(rest[len(line):]), separator))
	}
}
