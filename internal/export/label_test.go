package export

import (
	"slices"
	"testing"
)

func TestLabels(t *testing.T) {
	for _, test := range []struct {
		frame frame
		want  []string
	}{
		{frame{origin: ofUser, python: true, function: "Block.forward", file: "train/gpt2.py", line: 41},
			[]string{"train/gpt2.py:41 Block.forward", "gpt2.py:41 Block.forward", "gpt2.py:41", ":41"}},
		{frame{origin: ofUser, python: true, function: "main", file: "t.py"}, []string{"main t.py", "main"}},
		{frame{origin: ofPackage, python: true, function: "Linear.forward", file: "torch/nn/modules/linear.py",
			line: 125},
			[]string{"Linear.forward torch/nn/modules/linear.py:125", "Linear.forward"}},
		{frame{origin: ofNative, function: "at::native::f<a::b>"}, []string{"at::native::f<a::b>", "native::f<a::b>",
			"f<a::b>"}},
		{frame{origin: ofNative, function: "autograd: MmBackward0"}, []string{"autograd: MmBackward0", "MmBackward0"}},
		{frame{origin: ofNative, function: "main", file: "a/b.c", line: 3}, []string{"main a/b.c:3", "main"}},
		{frame{origin: ofUser, function: "main"}, []string{"main"}},
		{frame{origin: ofNative, function: "a::operator->"}, []string{"a::operator->"}},
		{frame{origin: ofNative, function: "odd::"}, []string{"odd::"}},
	} {
		if got := test.frame.labels(); !slices.Equal(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestFitLabel(t *testing.T) {
	names := []string{"train/gpt2.py:41 Block.forward", "gpt2.py:41", ":41"}
	for _, test := range []struct {
		room int
		want string
	}{
		{42, "train/gpt2.py:41 Block.forward · 16.0 MiB"}, {32, "train/gpt2.py:41 Block.forward"},
		{21, "gpt2.py:41 · 16.0 MiB"}, {12, "gpt2.py:41"}, {3, ":41"},
		{2, ""}, {0, ""}, {-1, ""},
	} {
		if got := fitLabel(names, "16.0 MiB", flamePad+flameChar*(float64(test.room)+0.01)); got != test.want {
			t.Errorf("room %d: %q, want %q", test.room, got, test.want)
		}
	}
	if got := fitLabel([]string{"漢字漢字漢字"}, "1 B", flamePad+flameChar*6.01); got != "漢字…" {
		t.Errorf("wide characters: %q", got)
	}
	if got := fitLabel([]string{"function"}, "1 B", flamePad+flameChar*3.5); got != "" {
		t.Errorf("no room: %q", got)
	}
}
