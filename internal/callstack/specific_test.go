package callstack

import (
	"slices"
	"strings"
	"testing"

	"memtrace/internal/symbol"
)

// stackThrough makes a stack of Python functions, outermost first: "main:4 train:7 torch Block:9". Names without a line
// are the framework's; lib is another library.
func stackThrough(text string) *Stack {
	const packages = "/v/lib/python3.11/site-packages/"
	s := &Stack{}
	for _, word := range strings.Fields(text) {
		f := &Frame{Frame: symbol.Frame{Kind: symbol.Python, Function: word, File: packages + "torch/nn.py"}}
		switch name, line, user := strings.Cut(word, ":"); {
		case user:
			f.Function, f.File, f.Line, f.User = name, "/app/train.py", int(line[0]-'0'), true
		case word == "lib":
			f.File = packages + "lightning/loop.py"
		}
		s.All = append(s.All, f)
	}
	slices.Reverse(s.All)
	j := NewClassifier(nil, nil)
	s.Shown, s.own = s.All, len(s.All)
	s.Site = siteOf(s)
	s.Key = j.Site(s.Site)
	return s
}

func TestSpecific(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grow, others []string
		want         string // places, by stack, functions only
	}{
		"the innermost line": {[]string{"main:1 keep:2 torch"}, []string{"main:1 other:3"}, "keep:2"},
		"temporaries of the same line": {[]string{"main:1 keep:2 torch"}, []string{"main:1 keep:2 torch torch"},
			"keep:2"},
		"a helper of others": {[]string{"main:1 serve:2 make:3"}, []string{"main:1 load:4 make:3"}, "serve:2"},
		"a block that training uses": {[]string{"main:1 lib validation_step:2 torch Block:3",
			"main:1 lib validation_step:2 torch Block:4"},
			[]string{"main:1 lib training_step:5 torch Block:3", "main:1 lib training_step:5 torch Block:4"},
			"validation_step:2 validation_step:2"},
		"a block of its own, line by line": {[]string{"main:1 torch Block:3", "main:1 torch Block:4"}, nil,
			"Block:3 Block:4"},
		"many lines of a block": {[]string{"main:1 torch Block:3", "main:1 torch Block:4", "main:1 torch Block:5"}, nil,
			"main:1 main:1 main:1"},
		"two leaks": {[]string{"main:1 answer:2 one:3", "main:1 answer:2 two:4"}, []string{"main:1 answer:2 other:5"},
			"one:3 two:4"},
		"all lines are the others' as well": {[]string{"main:1"}, []string{"main:1", "other:2 main:1"}, "main:1"},
		"below the trainer's own line": {[]string{"main:1 lib training_step:2 torch Block:3",
			"main:1 lib training_step:2 torch Block:4", "main:1 lib training_step:2 torch Block:5"},
			[]string{"main:1 lib optimizer_step:6"}, "training_step:2 training_step:2 training_step:2"},
	} {
		stacks := func(list []string) (stacks []*Stack) {
			for _, text := range list {
				stacks = append(stacks, stackThrough(text))
			}
			return stacks
		}
		j := NewClassifier(nil, nil)
		weights := slices.Repeat([]uint64{1}, len(c.grow))
		var got []string
		for _, p := range j.Specific(stacks(c.grow), weights, stacks(c.others)) {
			place, function, _ := strings.Cut(p.Key, " ")
			_, line, _ := strings.Cut(place, ":")
			got = append(got, function+":"+line)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
