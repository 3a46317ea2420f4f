package browser

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layout is where the parts of a page are, in pixels, and what is drawn where in the picture.
type layout struct {
	Overflow bool     `json:"overflow"`
	Ground   string   `json:"ground"`
	Parts    []part   `json:"parts"`
	Grid     []string `json:"grid"` // the layer at each of 7 by 23 points: a number, "r" for the rest, "." for none
}

type part struct {
	What string `json:"what"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
	W    int    `json:"w"`
	H    int    `json:"h"`
	Text string `json:"text,omitempty"`
}

// Fonts differ from machine to machine, and with them how wide words are and where lines break. What a page is made
// of, in which order and in which column, and what the picture shows does not.
const (
	tolerance  = 12  // pixels, of edges that do not depend on text
	wordsRoom  = 90  // pixels, of boxes as wide as their words
	heightPart = 0.4 // of heights, which lines of text make
	gridMisses = 8   // of 161 points, at edges of layers
)

var partsOfGolden = regexp.MustCompile(`\{\s*"what":[^}]*\}`)

func compareLayouts(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the browser did not get as far as the layout: %v", err)
	}
	var found, want map[string]layout
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if *update {
		pretty, err := json.MarshalIndent(found, "", " ")
		if err == nil {
			// one a line
			pretty = partsOfGolden.ReplaceAllFunc(pretty, func(text []byte) []byte {
				return bytes.Join(bytes.Fields(text), []byte(" "))
			})
			err = os.WriteFile(layoutFile, append(pretty, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(layoutFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if len(found) != len(want) {
		t.Errorf("%d layouts, want %d", len(found), len(want))
	}
	for name, w := range want {
		compareLayout(t, name, found[name], w)
	}
}

func compareLayout(t *testing.T, name string, got, want layout) {
	t.Helper()
	if got.Overflow != want.Overflow || got.Ground != want.Ground {
		t.Errorf("%s: overflow %t, ground %s", name, got.Overflow, got.Ground)
	}
	kinds := func(parts []part) (list []string) {
		for _, p := range parts {
			list = append(list, p.What+" "+p.Text)
		}
		return list
	}
	if g, w := kinds(got.Parts), kinds(want.Parts); !slices.Equal(g, w) {
		t.Errorf("%s: the page is made of\n%s\nwant\n%s", name, strings.Join(g, "\n"), strings.Join(w, "\n"))
		return
	}
	for i, g := range got.Parts {
		w := want.Parts[i]
		room := tolerance
		if strings.HasPrefix(g.What, "select") || strings.HasPrefix(g.What, "button") ||
			strings.HasPrefix(g.What, "input") || g.What == "table" {
			room = wordsRoom
		}
		if near(g.H, w.H, max(tolerance, int(heightPart*float64(w.H)))) && near(g.W, w.W, room) &&
			(room == wordsRoom || near(g.X, w.X, room)) {
			continue
		}
		t.Errorf("%s: %s %q lies at %d,%d and is %d by %d, want %d,%d and %d by %d", name, g.What, g.Text, g.X, g.Y,
			g.W, g.H, w.X, w.Y, w.W, w.H)
	}
	misses := 0
	for row := range want.Grid {
		for column := range want.Grid[row] {
			if row >= len(got.Grid) || column >= len(got.Grid[row]) || got.Grid[row][column] != want.Grid[row][column] {
				misses++
			}
		}
	}
	if misses > gridMisses {
		t.Errorf("%s: the picture differs at %d points\n%s\nwant\n%s", name, misses, strings.Join(got.Grid, "\n"),
			strings.Join(want.Grid, "\n"))
	}
}

func near(a, b, room int) bool { return max(a-b, b-a) <= room }
