package attach

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
	"memtrace/trace"
)

// holderText shows holders in lines of a width in columns.
type holderText struct {
	strings.Builder
	width int
}

// Columns beside and below a holder's bytes.
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
		t.words("", fmt.Sprintf("%s more rows were too long to be sent.", layout.Count(leftOut)))
	}
	if r.Late {
		t.words("", "Time ran out before the search ended, so that some holders are not known.")
	}
	if r.Unread {
		t.words("", "A backward pass was under way the whole time, so what autograd graphs keep and gradients are not known.")
	}
}

func (t *holderText) holder(h *placedHolder) {
	t.path(fmt.Sprintf("%*s  ", holderBytes, layout.Bytes(h.FreesBytes+h.SharedBytes)), h.Name())
	shape := strings.ReplaceAll(fmt.Sprint(h.Shape), " ", ", ")
	where := "on " + h.Device
	if h.Device == trace.OnHost {
		where = "in pinned host memory"
	}
	what := fmt.Sprintf("%s %s %s", h.DType, shape, where)
	if h.Tensors != 1 {
		what = fmt.Sprintf("%s tensors, the largest %s", layout.Count(h.Tensors), what)
	}
	if h.GraphNodes > 0 {
		what += fmt.Sprintf("; keeps an autograd graph of %s nodes", layout.Count(h.GraphNodes))
		switch {
		case h.GraphBytes > 0:
			what += fmt.Sprintf(" with %s saved", layout.Bytes(h.GraphBytes))
		case h.FreesAbout && h.FreesBytes > h.EndsBytes:
			what += fmt.Sprintf(" with about %s saved", layout.Bytes(h.FreesBytes-h.EndsBytes))
		}
	}
	what += layout.KeptViews(&h.Kept) + layout.KeptShared(&h.Kept)
	if h.Garbage {
		what += "; garbage in reference cycles, gc.collect() frees it"
	}
	indent := strings.Repeat(" ", holderIndent)
	t.words(indent, what)
	for i, site := range h.Sites {
		label := strings.Repeat(" ", holderLabel)
		if i == 0 {
			label = "allocated at "
		}
		if i == holderSites && len(h.Sites) > holderSites+1 {
			t.words(indent+label, fmt.Sprintf("and at %d more places", len(h.Sites)-holderSites))
			break
		}
		t.words(indent+label, site.text(len(h.Sites) > 1))
	}
	t.words(indent+"held by      ", h.Types)
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

// words writes a text after a label, in as many lines as its words take.
func (t *holderText) words(label, text string) {
	t.lines(cli.Hang(label, sanitize.Text(text), t.width))
}

// path writes a path after a label, in as many lines as it takes.
func (t *holderText) path(label, path string) {
	path = ansi.Hardwrap(sanitize.Text(path), t.width-ansi.StringWidth(label), true)
	t.lines(cli.Under(label, strings.Split(path, "\n")))
}

func (t *holderText) lines(list []string) {
	for _, line := range list {
		fmt.Fprintln(t, line)
	}
}
