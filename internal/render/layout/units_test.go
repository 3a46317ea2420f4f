package layout

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"memtrace/internal/sanitize"

	"github.com/clipperhouse/displaywidth"
)

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1536: "1.50 KiB",
		10235: "10.0 KiB", 10240: "10.0 KiB", 102400: "100.0 KiB",
		1<<20 - 1: "1.00 MiB", 1<<20 - 60: "1023.9 KiB", 1 << 20: "1.00 MiB", 80 << 30: "80.0 GiB",
		math.MaxUint64: "16.0 EiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1024: "+1.00 KiB", -1024: "-1.00 KiB", math.MinInt64: "-8.00 EiB"} {
		if got := SignedBytes(n); got != want {
			t.Errorf("SignedBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// Reports had ratios of rounded blocks with two decimals, "48.00 times", and shares above 100 %.
func TestRatio(t *testing.T) {
	for ratio, want := range map[float64]string{1.36: "1.4 times", 4.33: "4.3 times", 9.94: "9.9 times",
		9.96: "10 times", 48: "48 times"} {
		if got := Ratio(ratio, 1); got != want {
			t.Errorf("Ratio(%g) = %q, want %q", ratio, got, want)
		}
	}
}

func TestCountAndDuration(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for ns, want := range map[int64]string{0: "0 ns", 999: "999 ns", 1500: "1.5 us", 2_500_000: "2.5 ms",
		8_213_000_000: "8.213 s", 243e9: "4 min 03 s",
		7500e9: "2 h 05 min", math.MinInt64: "-1281023 h 53 min"} {
		if got := Duration(ns); got != want {
			t.Errorf("Duration(%d) = %q, want %q", ns, got, want)
		}
	}
}

// TestTenthsAddUp: for any values, a column of percents adds up to 100.0, and no share is off by a tenth or more.
func TestTenthsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		values := make([]uint64, 1+rng.IntN(30))
		whole := 0.0
		for i := range values {
			values[i] = rng.Uint64() >> rng.IntN(64)
			whole += float64(values[i])
		}
		shares, sum := Tenths(values), 0
		for i, s := range shares {
			sum += s
			if exact := 1000 * float64(values[i]) / whole; math.Abs(float64(s)-exact) > 1.001 {
				t.Fatalf("%d of %g is %d tenths, want about %.2f", values[i], whole, s, exact)
			}
		}
		if sum != 1000 && whole > 0 {
			t.Fatalf("shares of %v add up to %d", values, sum)
		}
	}
	for _, s := range Tenths([]uint64{0, 0}) {
		if s != 0 {
			t.Error("a share of nothing")
		}
	}
	if got := Tenths([]uint64{1, 1, 1}); got[0]+got[1]+got[2] != 1000 || got[0] != 334 {
		t.Errorf("thirds are %v", got)
	}
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		value, largest uint64
		ascii          bool
		want           string
	}{
		{8, 8, false, "████"}, {4, 8, false, "██"}, {1, 8, false, "▌"}, {1, 1000, false, "▏"}, {0, 8, false, ""},
		{0, 0, false, ""},
		{8, 8, true, "####"}, {1, 1000, true, "#"}, {math.MaxUint64, math.MaxUint64, false, "████"},
	} {
		if got := Bar(test.value, test.largest, 4, test.ascii); got != test.want {
			t.Errorf("bar(%d of %d, ascii %v) = %q, want %q", test.value, test.largest, test.ascii, got, test.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{"model.π": "model.π", "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc": `a\x0ab\x09c`,
		"bad\xff": `bad\xff`, "\u202eevil": `\u202eevil`} {
		if got := sanitize.Text(in); got != want {
			t.Errorf("visible.Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClipAndWrap(t *testing.T) {
	for _, test := range []struct {
		width int
		ascii bool
		want  string
	}{{20, false, "model.encoder.0"}, {9, false, "mo…oder.0"}, {9, true, "mo...er.0"}, {2, true, "mo"},
		{0, false, ""}} {
		if got := Clip("model.encoder.0", test.width, test.ascii); got != test.want {
			t.Errorf("clip to %d = %q, want %q", test.width, got, test.want)
		}
	}
	got := strings.Join(Wrap("peak 8.00 KiB, live in abcdefghijklmnop (1.5 s) now", 12), "|")
	if want := "peak|8.00 KiB,|live in|abcdefghijkl|mnop (1.5 s)|now"; got != want {
		t.Errorf("wrap = %q, want %q", got, want)
	}
}

// Columns are aligned for any characters in names: a terminal gives a wide character two cells and a combining mark
// none.
func TestTablesCountCells(t *testing.T) {
	names := []string{"train.py:3", "模型训练.py:3", "mode\u0301le.py:3", "🚀.py", strings.Repeat("層", 60),
		strings.Repeat("e\u0301", 90)}
	var rows [][]Cell
	for _, name := range names {
		rows = append(rows, []Cell{{Text: name}, {Text: "1.00 GiB"}})
	}
	for _, width := range []int{60, 61} {
		var text strings.Builder
		NewPage(&text, Options{Width: width}).Table([]Column{{Title: "owner"}, {Title: "bytes", Right: true}}, rows)
		for line := range strings.Lines(text.String()) {
			if line = strings.TrimSuffix(line, "\n"); displaywidth.String(line) != width {
				t.Errorf("%d cells, want %d: %q", displaywidth.String(line), width, line)
			}
		}
	}
}

// FuzzClip: the clipped text never takes more cells than allowed, and nothing is lost if there is room.
func FuzzClip(f *testing.F) {
	for _, text := range []string{"", "model.encoder.0", "模型训练.py:3", "e\u0301e\u0301", "👩‍👩‍👧‍👦 family", "\xff\xfe",
		"\u200b\u0300"} {
		f.Add(text, 7, false)
	}
	f.Fuzz(func(t *testing.T, text string, width int, ascii bool) {
		text, width = sanitize.Text(text), min(max(width, 0), 1000)
		got := Clip(text, width, ascii)
		if displaywidth.String(got) > width || displaywidth.String(text) <= width && got != text {
			t.Errorf("clip(%q, %d) = %q", text, width, got)
		}
		for i, line := range Wrap(text, width) {
			if displaywidth.String(line) > max(width, widestCharacter) {
				t.Errorf("Wrap(%q, %d): line %d is %q", text, width, i, line)
			}
		}
	})
}
