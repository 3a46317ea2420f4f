package page

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
)

// headOf is the head of a rank whose iterations, numbered from first on, each hold the bytes that held gives.
func headOf(rank, iterations int, first uint64, categories []string, held func(iteration, k int) uint64) *report.Head {
	s := &report.Summary{Process: report.Process{Rank: &rank, Host: hostile}, Trend: &report.Trend{}}
	h := &report.Head{Summary: s, Steps: report.StepTable{Held: make([][]uint64, len(categories))}}
	for _, name := range categories {
		h.Categories = append(h.Categories, report.Purpose{Name: name})
	}
	for i := range iterations {
		sum := uint64(0)
		for k := range categories {
			bytes := held(i, k)
			h.Steps.Held[k] = append(h.Steps.Held[k], bytes)
			sum += bytes
			c := &h.Categories[k]
			c.HighestBytes, c.PeakBytes = max(c.HighestBytes, bytes), bytes
		}
		h.Steps.Number, h.Steps.Count = append(h.Steps.Number, first+uint64(i)), append(h.Steps.Count, 1)
		h.Steps.Peak = append(h.Steps.Peak, sum)
		s.Framework.PeakBytes = max(s.Framework.PeakBytes, sum)
	}
	s.Framework.AllocCount = 1
	return h
}

func ranksOf(t *testing.T, heads ...*report.Head) *diff.Ranks {
	t.Helper()
	var list []diff.RankProcess
	for _, head := range heads {
		path := fmt.Sprintf("javascript:%d<b>.mtp", *head.Summary.Process.Rank)
		list = append(list, diff.RankProcess{Path: path, Head: head})
	}
	r, err := diff.CompareRanks(list, func(p *diff.RankProcess) (*report.Summary, error) {
		return p.Head.Summary, nil
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ranksPageOf(t *testing.T, r *diff.Ranks) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRanks(&b, r, RanksOptions{Names: hostile, Folder: ".", Unread: []string{hostile}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// No name of a profile or of a file becomes an element or an address of another kind, the policy names what is in the
// page, and the same ranks give the same bytes.
func TestRanksPageEscapesNames(t *testing.T) {
	of := func() string {
		var heads []*report.Head
		for rank := range 3 {
			heads = append(heads, headOf(rank, 5, 1, []string{hostile, "b"}, func(int, int) uint64 { return 5 << 20 }))
		}
		return ranksPageOf(t, ranksOf(t, heads...))
	}
	page := of()
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d elements of scripts, want the facts, the columns and the script", n)
	}
	for _, text := range []string{"<img", "<b>", "\x1b", "\u202e", `href="javascript`} {
		if strings.Contains(strings.Replace(page, "<b>memtrace</b>", "", 1), text) {
			t.Errorf("the page has %q", text)
		}
	}
	for kind, pattern := range map[string]string{"style-src": `(?s)<style>(.*?)</style>`,
		"script-src": `(?s)<script>(.*?)</script>`} {
		body := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if body == nil || !strings.Contains(html.UnescapeString(page), kind+" '"+hash(body[1])+"'") {
			t.Errorf("%s: the policy does not name what stands in the page", kind)
		}
	}
	if page != of() {
		t.Error("two pages of the same ranks differ")
	}
}

// TestRanksPageInABrowser: its script runs under its own policy, with hostile names, and complains of nothing.
func TestRanksPageInABrowser(t *testing.T) {
	t.Parallel()
	var heads []*report.Head
	for rank := range 30 {
		heads = append(heads, headOf(rank, 5, 1, []string{hostile, "b"}, func(i, k int) uint64 {
			return uint64(1+rank/29) << 20
		}))
	}
	document, console := opened(t, ranksPageOf(t, ranksOf(t, heads...)), "")
	if console != "" || !strings.Contains(document, `data-ready="yes"`) || strings.Contains(document, "<img") {
		t.Errorf("the page is not ready, complains, or has an element of a name's:\n%s", console)
	}
	if !strings.Contains(document, `aria-pressed="true">all memory</button>`) {
		t.Error("no kind of memory is chosen")
	}
}

// TestColumns: of any iterations there are at most 64 columns, each iteration is in the one that names it, and a
// column has the highest moment of those of a process.
func TestColumns(t *testing.T) {
	for _, n := range []int{2, 63, 64, 65, 127, 128} {
		held := func(i, k int) uint64 { return uint64(1000 + (i*7919+k)%997) }
		h := heatOf(ranksOf(t, headOf(0, n, 1, []string{"a", "b"}, held), headOf(1, 1, math.MaxUint64, nil, nil)))
		each := (n + 1 + heatColumns - 1) / heatColumns
		if len(h.Columns) != (n+each)/each {
			t.Fatalf("%d iterations: %d columns", n, len(h.Columns))
		}
		for c := range h.Columns {
			var want uint64
			for i := c * each; i < min((c+1)*each, n); i++ {
				want = max(want, 1+held(i, 0)+held(i, 1))
			}
			if got := h.cells[0][c]; got != want || want > 0 && h.cells[1][c]+h.cells[2][c] != want+1 {
				t.Errorf("%d iterations, %s: %d, want %d", n, h.Columns[c], got, want)
			}
		}
	}
}

// TestManyCategories: the largest have kinds of their own, the others one together, and nothing is lost.
func TestManyCategories(t *testing.T) {
	var names []string
	for k := range 40 {
		names = append(names, fmt.Sprint("category ", k))
	}
	h := heatOf(ranksOf(t, headOf(0, 3, 1, names, func(_, k int) uint64 { return uint64(k + 1) })))
	sum := uint64(0)
	for k := range h.Kinds[1:] {
		sum += h.cells[1+k][0] - 1
	}
	if len(h.Kinds) != heatKinds || h.Kinds[1].Name != "category 30" ||
		h.Kinds[heatKinds-1].Name != "other categories" || sum != 40*41/2 || h.cells[0][0] != 1+sum {
		t.Errorf("%v, together %d bytes", h.Kinds, sum)
	}
}

// TestCellsOfNoiseAreSmall: cells that nothing can be said of beforehand are rounded until they take the room that they
// may, and a page has at most 1 MB of the rest.
func TestCellsOfNoiseAreSmall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := &heat{Names: make([]string, 1000), Columns: make([]string, heatColumns), Kinds: make([]heatKind, 9)}
	h.cells = h.newCells(heatColumns)
	for _, cells := range h.cells {
		for i := range cells {
			cells[i] = 1 + random.Uint64N(64<<30)
		}
	}
	text, err := h.pack()
	if err != nil || len(text) > 640_000 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if unit := h.rounded(); unit > 1<<30 {
		t.Errorf("sizes up to 64 GiB are rounded to %d bytes", unit)
	}
}
