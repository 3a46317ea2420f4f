package fold

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCover(t *testing.T) {
	flat := make([]string, 20) // one function with twenty lines of the same size
	for i := range flat {
		flat[i] = fmt.Sprintf("train.py/forward/%d", i)
	}
	for _, test := range []struct {
		name         string
		names        []string
		bytes        []uint64
		limit, depth int
		want         []string
	}{
		{"whole paths are enough", []string{"a/b/c", "a/b/d", "e"}, []uint64{50, 40, 10}, 2, 9,
			[]string{"a/b/c 50", "a/b/d 40", "e 10"}},
		{"a weighty one stands alone", []string{"a/b/c", "a/b/d", "a/b/e", "a/b/f", "a/b/g"},
			[]uint64{30, 20, 20, 20, 10}, 2, 9, []string{"a/b 70", "a/b/c 30"}},
		{"one level up", []string{"a/b/c", "a/b/d", "a/b/x", "a/e/f", "a/e/g"}, []uint64{20, 20, 20, 20, 20}, 2,
			9, []string{"a/b 60", "a/e 40"}},
		{"no deeper than asked", []string{"a/b/c", "a/b/d", "a/e"}, []uint64{10, 10, 80}, 9, 2,
			[]string{"a/e 80", "a/b 20"}},
		{"one member keeps its whole name", []string{"a/b/c", "a/e/f", "a/e/g"}, []uint64{60, 20, 20}, 2, 2,
			[]string{"a/b/c 60", "a/e 40"}},
		{"many small lines of one function", append(slices.Clone(flat), "main.py/main/1"),
			append(slices.Repeat([]uint64{5}, 20), 1), 4, 9, []string{"train.py/forward 100", "main.py/main/1 1"}},
		{"nothing to put together", []string{"a", "b", "c", "d"}, []uint64{1, 1, 1, 1}, 2, 9,
			[]string{"a 1", "b 1", "c 1", "d 1"}},
		{"nothing", nil, nil, 3, 3, nil},
	} {
		var paths [][]string
		for _, name := range test.names {
			paths = append(paths, strings.Split(name, "/"))
		}
		var got []string
		members := 0
		for _, g := range Cover(paths, test.bytes, test.limit, test.depth) {
			got = append(got, fmt.Sprintf("%s %d", strings.Join(g.Path, "/"), g.Bytes))
			members += len(g.Members)
		}
		if !slices.Equal(got, test.want) || members != len(test.names) {
			t.Errorf("%s: %q with %d members, want %q", test.name, got, members, test.want)
		}
	}
}

func TestModulePath(t *testing.T) {
	for name, want := range map[string][]string{
		"":                        {""},
		"lm_head":                 {"lm_head"},
		"model.h.{0..3,7}.attn.q": {"model", "h", "{0..3,7}", "attn", "q"},
		"}.a":                     {"}.a"},
	} {
		if got := ModulePath(name); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
