package cli

import "testing"

func TestParseBytes(t *testing.T) {
	good := map[string]int64{"1": 1, "65536": 65536, "64M": 64 << 20, "24 MB": 24 << 20, "24MiB": 24 << 20,
		"1.5GiB": 3 << 29, "2t": 2 << 40, " 7 k ": 7 << 10, "10b": 10}
	for text, want := range good {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "M", "0", "-1", "1x", "1 2", "1.2.3M", "NaN", "Inf", "9e99", "99999999T", "0.1"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("parseBytes(%q) = %d; want an error", text, got)
		}
	}
}
