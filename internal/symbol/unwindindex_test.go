package symbol

import (
	"regexp"
	"strconv"
	"testing"
)

// fdeLine is how readelf shows where a function begins and ends.
var fdeLine = regexp.MustCompile(`(?m) FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)`)

// TestBoundsAgainstReadelf: the unwind table's functions are those that readelf lists, with and without the sorted
// table.
func TestBoundsAgainstReadelf(t *testing.T) {
	for name, flags := range map[string][]string{
		"program":         {"-O2"},
		"shared":          {"-O2", "-shared", "-fPIC"},
		"static":          {"-O2", "-static", "-Wl,--eh-frame-hdr"},
		"no sorted table": {"-O2", "-static", "-Wl,--no-eh-frame-hdr"},
	} {
		t.Run(name, func(t *testing.T) {
			path := compiled(t, "gcc", "inlined.c", flags...)
			im, err := openImage(path)
			if err != nil {
				t.Fatal(err)
			}
			defer im.close()
			unwind, err := im.readUnwind()
			if err != nil {
				t.Fatal(err)
			}
			if (unwind.table == nil) != (name == "no sorted table") {
				t.Errorf("a sorted table of %d bytes", len(unwind.table))
			}
			found := 0
			for _, m := range fdeLine.FindAllStringSubmatch(command(t, "", "readelf", "--debug-dump=frames", path),
				-1) {
				start, _ := strconv.ParseUint(m[1], 16, 64)
				end, _ := strconv.ParseUint(m[2], 16, 64)
				if start == end {
					continue
				}
				found++
				for _, a := range []uint64{start, (start + end) / 2, end - 1} {
					if got, ok := unwind.at(a); !ok || got != (span{start, end}) {
						t.Fatalf("%#x: %#x %v, want %#x..%#x", a, got, ok, start, end)
					}
				}
			}
			if found < 5 {
				t.Errorf("readelf lists %d functions", found)
			}
		})
	}
}
