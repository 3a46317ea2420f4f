package fold

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// foldText writes folds in one line each: the name, how many, and the smallest, the largest and the sum.
func foldText(list []Fold) (lines []string) {
	for _, f := range list {
		lines = append(lines, fmt.Sprintf("%s %d %d-%d %d", f.Name, len(f.Members), f.Min, f.Max, f.Bytes))
	}
	return lines
}

func TestFoldModules(t *testing.T) {
	for _, test := range []struct {
		name  string
		names []string
		bytes []uint64
		want  []string
	}{
		{"repeated layers", []string{"h.0.attn", "h.1.attn", "h.2.attn", "lm_head"}, []uint64{5, 5, 7, 20},
			[]string{"lm_head 1 20-20 20", "h.{0..2}.attn 3 5-7 17"}},
		{"what is missing is not hidden", []string{"h.0.attn", "h.1.attn", "h.3.attn", "h.11.attn"},
			[]uint64{1, 1, 1, 1}, []string{"h.{0..1,3,11}.attn 4 1-1 4"}},
		{"ten comes after nine", []string{"h.10.a", "h.9.a", "h.8.a"}, []uint64{1, 2, 3},
			[]string{"h.{8..10}.a 3 1-3 6"}},
		{"different layers of a list", []string{"features.0", "features.1", "features.2"}, []uint64{64, 64, 9},
			[]string{"features.{0..1} 2 64-64 128", "features.2 1 9-9 9"}},
		{"a list that repeats", []string{"h.0", "h.1", "h.0.mlp", "h.1.mlp"}, []uint64{1, 2, 3, 4},
			[]string{"h.{0..1}.mlp 2 3-4 7", "h.{0..1} 2 1-2 3"}},
		{"experts that are one layer each", []string{"h.0.e.0", "h.0.e.1", "h.0.e.2", "h.1.e.0", "h.1.e.1", "h.1.e.2"},
			[]uint64{4, 4, 4, 4, 4, 4}, []string{"h.{0..1}.e.{0..2} 6 4-4 24"}},
		{"experts of layers", []string{"h.0.e.0.w", "h.0.e.1.w", "h.1.e.0.w", "h.1.e.1.w"}, []uint64{4, 4, 4, 4},
			[]string{"h.{0..1}.e.{0..1}.w 4 4-4 16"}},
		{"numbers in words, beside an index", []string{"h.0.ln_1", "h.0.ln_2"}, []uint64{3, 3},
			[]string{"h.0.ln_1 1 3-3 3", "h.0.ln_2 1 3-3 3"}},
		{"numbers in words alone", []string{"net0_cell0_attn", "net0_cell1_attn", "net0_cell2_attn"}, []uint64{3, 3, 3},
			[]string{"net0_cell{0..2}_attn 3 3-3 9"}},
		{"sizes with digits are no indices", []string{"conv3x3", "conv5x5"}, []uint64{3, 3},
			[]string{"conv3x3 1 3-3 3", "conv5x5 1 3-3 3"}},
		{"many scattered indices", []string{"h.0.a", "h.2.a", "h.4.a", "h.6.a", "h.8.a", "h.10.a", "h.12.a"},
			[]uint64{1, 1, 1, 1, 1, 1, 1}, []string{"h.{7 of 0..12}.a 7 1-1 7"}},
		{"no names", nil, nil, nil},
	} {
		if got := foldText(Modules(test.names, test.bytes)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestFoldSizedKeepsSizesApart(t *testing.T) {
	names := []string{"f.0.weight", "f.2.weight", "f.4.weight", "f.0.bias"}
	got := foldText(Sized(names, []uint64{30, 31, 9, 1}, []uint64{10, 10, 3, 1}))
	two := foldText(Sized([]string{"h.0.mlp.0.weight", "h.0.mlp.2.weight", "h.1.mlp.0.weight", "h.1.mlp.2.weight"},
		[]uint64{1, 1, 1, 1}, []uint64{1, 1, 1, 1}))
	if want := []string{"h.{0..1}.mlp.0.weight 2 1-1 2", "h.{0..1}.mlp.2.weight 2 1-1 2"}; !slices.Equal(two, want) {
		t.Errorf("%q, want %q", two, want)
	}
	want := []string{"f.{0,2}.weight 2 30-31 61", "f.4.weight 1 9-9 9", "f.0.bias 1 1-1 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFoldingLosesNothing: for any names, each is a member of exactly one fold, and the sums are those of the names.
func TestFoldingLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"h", "0", "1", "12", "attn", "w1", "", "3x3", "layer2", "_", "007", "99999999999999999999999"}
	for range 300 {
		var names []string
		var bytes []uint64
		var whole uint64
		for range random.IntN(40) {
			var parts []string
			for range 1 + random.IntN(5) {
				parts = append(parts, words[random.IntN(len(words))])
			}
			names, bytes = append(names, strings.Join(parts, ".")), append(bytes, uint64(random.IntN(3)))
			whole += bytes[len(bytes)-1]
		}
		for _, fold := range [][]Fold{Modules(names, bytes), Sized(names, bytes, bytes)} {
			var sum uint64
			seen := make([]bool, len(names))
			for _, f := range fold {
				sum += f.Bytes
				for _, m := range f.Members {
					if seen[m] {
						t.Fatalf("%q counts twice", names[m])
					}
					seen[m] = true
					if bytes[m] < f.Min || bytes[m] > f.Max {
						t.Fatalf("%s: %d is not between %d and %d", f.Name, bytes[m], f.Min, f.Max)
					}
				}
			}
			if sum != whole || slices.Contains(seen, false) {
				t.Fatalf("%q: %v lost something", names, foldText(fold))
			}
		}
	}
}

// TestFoldingIsBounded: a name of a million parts costs no more than a long one.
func TestFoldingIsBounded(t *testing.T) {
	long := strings.Repeat("0.", 1<<19)
	if got := Modules([]string{long, long + "1"}, []uint64{1, 1}); len(got) != 2 || got[0].Repeated() {
		t.Errorf("%d folds", len(got))
	}
}
