package launch

import (
	"strings"
	"testing"
)

func TestNullGPUValues(t *testing.T) {
	const g = 1 << 30
	for text, want := range map[string]NullGPU{DefaultNullGPU: {1, 80 * g}, "2": {2, 80 * g}, "24GiB": {1, 24 * g},
		"8x1.5G": {8, 3 * g / 2}, "1x1M": {1, 1 << 20}, "1x16T": {1, 16384 * g}} {
		var n NullGPU
		if err := n.Set(text); err != nil || n != want {
			t.Errorf("%q is %+v, %v; want %+v", text, n, err, want)
		}
	}
	for text, want := range map[string]string{"0": "1 to 8 devices", "9": "1 to 8 devices", "-1": "1 to 8 devices",
		"": "not a size", "x": "1 to 8 devices", "2x": "not a size", "2x24GiBx": "not a size", "many": "not a size",
		"1x1K": "1 MiB to 16 TiB", "17T": "1 MiB to 16 TiB"} {
		n := NullGPU{3, 4}
		if err := n.Set(text); err == nil || !strings.Contains(err.Error(), want) || n != (NullGPU{3, 4}) {
			t.Errorf("%q is %+v, %v; want an error with %q", text, n, err, want)
		}
	}
}

// The files of processes are the manifest's entries; the null GPU's account beside them is none.
func TestNullAccountIsNoEntry(t *testing.T) {
	outer, inner := Manifest{t.TempDir()}, Manifest{t.TempDir()}
	for path, text := range map[string]string{inner.NullAccount(): "\x01\x02", inner.Dir + "/7.0": "/x/t.bin\n"} {
		if err := writeManifestEntry(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := inner.PassOn(outer.Dir); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Manifest{inner, outer} {
		if paths, bad := m.Traces(); len(paths) != 1 || paths[0] != "/x/t.bin" || len(bad) > 0 {
			t.Errorf("traces %q, %v", paths, bad)
		}
	}
}
