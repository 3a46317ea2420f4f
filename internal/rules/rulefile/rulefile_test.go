package rulefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/rules"
)

func preset(t *testing.T, name string) *rules.Set {
	t.Helper()
	set, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func category(set *rules.Set, s rules.Subject) string {
	list := set.Matcher().Match(&s)
	if len(list) == 0 {
		return rules.Others
	}
	return strings.Join(list, "+")
}

// TestPresets: each one parses, is listed, and bears its file's name.
func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		if set := preset(t, name); set.Name != name || set.Doc == "" || set.Mode != rules.FirstMatch {
			t.Errorf("%s: name %q, description %q, mode %s", name, set.Name, set.Doc, set.Mode)
		}
	}
	files, err := presets.ReadDir("presets")
	if err != nil || len(files) != len(presetNames) {
		t.Errorf("%d files, %d names: %v", len(files), len(presetNames), err)
	}
	if _, err := PresetText("none"); err == nil || !strings.Contains(err.Error(), "choose from torch") {
		t.Errorf("%v", err)
	}
}

// TestKeywordsOfTBD: the meanings that the tool of that name had, and its 47 keywords in their order.
func TestKeywordsOfTBD(t *testing.T) {
	set := preset(t, "mxnet-tbd")
	if len(set.Rules) != 47 {
		t.Errorf("%d rules", len(set.Rules))
	}
	for tag, want := range map[string]string{
		"in_arg:source_target_embed_weight":   "Weights", // not Embedding
		"forward_features:dropout0_fwd":       "Dropout",
		"workspace:dot-inl":                   "Workspace", // not Dot
		"arg_grad:encoder_rnn":                "Weight Gradients",
		"optimizer_weight_update_fc1":         "Optimizer State",
		"forward_features:source_embed":       "Embedding Layer",
		"forward_features:Embed":              rules.Others,
		"warning!,ctx_source_unclear":         "Unknown (From C++ side)",
		"forward_features:stage1_unit1_conv1": "Convolutional Unit",
	} {
		if got := category(set, rules.Subject{Tag: tag}); got != want {
			t.Errorf("tag %s: %s, want %s", tag, got, want)
		}
		if got := category(set, rules.Subject{Name: tag}); got != want {
			t.Errorf("name %s: %s, want %s", tag, got, want)
		}
	}
	if got := category(set, rules.Subject{Frames: []*rules.Frame{{Functions: []string{"aten::dot"}}}}); got !=
		rules.Others {
		t.Errorf("a function is taken for a tag: %s", got)
	}
}

// TestOtherPresets applies each of them to a few subjects.
func TestOtherPresets(t *testing.T) {
	f := func(function, file, library string) *rules.Frame {
		return &rules.Frame{Functions: []string{function}, File: file, Library: library}
	}
	step := []*rules.Frame{f("Adam._init_group", "/v/torch/optim/adam.py", "")}
	for _, test := range []struct {
		preset, want string
		subject      rules.Subject
	}{
		{"mxnet-data-structures", "Parameters", rules.Subject{Tag: "optimizer_state:mean:fc_weight"}},
		{"mxnet-data-structures", "Data Entries", rules.Subject{Tag: "data_entry:fc1_oedge0"}},
		{"mxnet-data-structures", rules.Others, rules.Subject{Tag: "aux_state:bn0_moving_mean"}},
		{"mxnet-layers", "RNN", rules.Subject{Tag: "in_arg:encoder_LSTM_i2h_weight"}},
		{"torch", "Optimizer state", rules.Subject{Level: "framework", Frames: step}},
		{"torch", "Temporary",
			rules.Subject{Level: "framework",
				Frames: []*rules.Frame{f("_single_tensor_adam", "/v/torch/optim/adam.py", "")}}},
		{"torch", "Workspace",
			rules.Subject{Level: "framework", Frames: []*rules.Frame{f("at::cuda::getNewWorkspace", "", ""),
				f("Net.forward", "train.py", "")}}},
		{"torch", "Library", rules.Subject{Level: "driver", Library: "libcublas.so.12"}},
		{"torch", "PyTorch's allocator",
			rules.Subject{Level: "driver", Frames: []*rules.Frame{f("malloc", "", "libc10_cuda.so"),
				f("at::cuda::getNewWorkspace", "", "")}}},
		{"torch", "Intermediate gradients", rules.Subject{Thread: "pt_autograd_0", Lasts: rules.Temporary}},
		{"torch", "Gradients", rules.Subject{Thread: "pt_autograd_0", Lasts: rules.Lasting}},
		{"torch", "Feature maps", rules.Subject{Frames: []*rules.Frame{f("Net.forward", "train.py", "")},
			Lasts: rules.Lasting}},
		{"torch", "Temporary", rules.Subject{Frames: []*rules.Frame{f("Net.forward", "train.py", "")},
			Lasts: rules.Temporary}},
		{"torch", "Recomputed feature maps",
			rules.Subject{Frames: []*rules.Frame{f("Net.forward", "train.py", ""),
				f("unpack_hook", "/v/torch/utils/checkpoint.py", "")}}},
		{"torch", "Parameters", rules.Subject{Name: "parameter:h.0.ln1.weight", Frames: step}},
		{"torch", rules.Others, rules.Subject{}},
		{"tbd-paper", "Optimizer", rules.Subject{Frames: step}},
		{"tbd-paper", "Weight gradients", rules.Subject{Tag: "arg_grad:fc1_weight"}},
		{"libraries", "NCCL", rules.Subject{Level: "driver", Library: "libnccl.so.2"}},
		{"libraries", "PyTorch", rules.Subject{Level: "framework", Library: "libc10_cuda.so"}},
		{"libraries", "train, load", rules.Subject{Level: "driver", Library: "train", Site: f("load", "", "train")}},
	} {
		if got := category(preset(t, test.preset), test.subject); got != test.want {
			t.Errorf("%s: %+v is %s, want %s", test.preset, test.subject, got, test.want)
		}
	}
}

// TestForms: every way to write a condition.
func TestForms(t *testing.T) {
	const text = `
mode = "multi-match"

[[rule]]
category = "all" # of them
tag = ["a", { text = "B", ignore_case = true }, # two
       { regex = '^c' }]
size = [">= 2KiB", "< 3KiB"]
phase = ["other", "init"]

[[rule]]
category = "site"
site.function = "main"
`
	set, err := Parse("x/mine.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "mine" || set.Mode != rules.MultiMatch || len(set.Rules) != 2 || len(set.Rules[0].Conditions) != 3 {
		t.Errorf("%+v", set)
	}
	for _, s := range []rules.Subject{{Tag: "xax", Size: 2048}, {Tag: "xbx", Size: 3071}, {Tag: "cx", Size: 2048}} {
		if got := category(set, s); got != "all" {
			t.Errorf("%+v: %s", s, got)
		}
	}
	for _, s := range []rules.Subject{{Tag: "xax", Size: 3072}, {Tag: "xcx", Size: 2048}} {
		if got := category(set, s); got != rules.Others {
			t.Errorf("%+v: %s", s, got)
		}
	}
}

// TestErrors: each names the file, the line, the fault and the allowed values.
func TestErrors(t *testing.T) {
	rule := "[[rule]]\ncategory = \"a\"\n"
	for _, test := range []struct{ text, want string }{
		{"", "f.toml: a set needs a rule"},
		{"x = 1\n", `f.toml:1: there is no key "x" here; the file has name, description, mode, and [[rule]] tables`},
		{"\nmode = \"all\"\n", `f.toml:2: mode "all": choose from first-match, multi-match`},
		{"name = 5\n", "f.toml:1: name: write a text in quotes, not a value of kind integer"},
		{"name = \"\"\n", "f.toml:1: name \"\": one short line"},
		{"[rule]\n", "f.toml:1: [rule]: rules are [[rule]] tables, with double brackets"},
		{"\n[[rules]]\n", "f.toml:2: [[rules]]: the file has name, description, mode, and [[rule]] tables"},
		{rule, `f.toml:1: category "a": a rule needs a condition; choose from any, label, tag`},
		{"[[rule]]\ntag = \"x\"\n" + rule + "tag = \"x\"\n", "f.toml:1: a rule needs a category"},
		{rule + "tags = \"x\"\n", `f.toml:3: there is no field "tags"; choose from any, label, tag`},
		{rule + "lifetime = \"kept\"\n",
			"f.toml:3: lifetime: there is no lifetime \"kept\"; choose from lasting, temporary"},
		{rule + "tag = 1\n", "f.toml:3: tag: write a text in quotes"},
		{rule + "tag = []\n", "f.toml:3: tag: says nothing"},
		{rule + "tag = [\n\"a\",\n\"\"]\n", "f.toml:5: tag: an empty text would match everything"},
		{rule + "tag = { regex = \"(\" }\n", "f.toml:3: tag: regex \"(\": error parsing regexp: missing closing )"},
		{rule + "tag = { glob = \"x\" }\n",
			`f.toml:3: tag: there is no key "glob"; choose from text or regex, and ignore_case`},
		{rule + "tag = { text = \"x\", regex = \"y\" }\n", "f.toml:3: tag: needs one of text and regex"},
		{rule + "tag = { ignore_case = true }\n", "f.toml:3: tag: needs one of text and regex"},
		{rule + "tag = { text = \"x\", ignore_case = \"yes\" }\n", "f.toml:3: tag.ignore_case: write true or false"},
		{rule + "kind = \"gpu\"\n", `f.toml:3: kind: there is no kind "gpu"; choose from device, managed, host`},
		{rule + "kind = { text = \"device\" }\n",
			"f.toml:3: kind: write a text in quotes, not a value of kind inlinetable"},
		{rule + "phase = \"warmup\"\n", `f.toml:3: phase: there is no phase "warmup"; choose from init, forward`},
		{rule + "size = \"2MiB\"\n", `f.toml:3: size "2MiB": write a comparison`},
		{rule + "size = \">= 2XB\"\n", `f.toml:3: size ">= 2XB": there is no unit "XB"; choose from B, KiB`},
		{rule + "tag = \"a\"\ntag = \"b\"\n", "f.toml:4: "},
		{rule + "tag = a\n", "f.toml:3: "},
		{rule + "tag = \"a\n", "f.toml:3: "},
		{strings.Repeat("#", maxFile+1), "f.toml: a file of rules may have 262144 bytes"},
		{strings.Repeat(rule+"tag=\"a\"\n", rules.MaxRules+1), "f.toml:6001: more than 2000 rules"},
	} {
		_, err := Parse("f.toml", []byte(test.text))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%.60q\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}

// TestDocumentation: the example of docs/rules.md is a set, and its tables list every field and every preset.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```toml\n")
	example, _, found := strings.Cut(rest, "```")
	if _, err := Parse("rules.md", []byte(example)); !found || err != nil {
		t.Errorf("%v", err)
	}
	_, unknown := rules.ParseField("?")
	_, list, _ := strings.Cut(unknown.Error(), "choose from ")
	for _, name := range append(strings.Split(list, ", "), Presets()...) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/rules.md does not name %s", name)
		}
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.toml")
	text, err := PresetText("tbd-paper")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if set, err := Open(path); err != nil || set.Name != "tbd-paper" {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := Open("torhc"); err == nil || !strings.Contains(err.Error(), "the presets are torch, libraries") {
		t.Errorf("%v", err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil {
		t.Error("a folder is read")
	}
}

// FuzzParse: no text makes the reader panic, an accepted set is within the limits, and errors name the file.
func FuzzParse(f *testing.F) {
	text, err := PresetText("mxnet-data-structures") // longer ones would be mutated at a snail's pace
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, text := range []string{"", "[[rule]]", "[[rule]]\ncategory='a'\ntag=[{regex='('}]", "[[rule.x]]\ny=1",
		"rule=[{category='a',tag='b'}]", "a.b.c=1", "[[rule]]\nsize=['>=1','<2']\ncategory=''",
		"name='''\na'''", "[[rule]]\ntag={text='a',text='b'}", "x=1979-05-27", "\xff", "[[rule]]\n\"\"=1",
		"[[rule]]\ntag=[[['a']]]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := Parse("f.toml", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.toml:") {
				t.Errorf("no place in %q", err)
			}
			return
		}
		if len(set.Rules) == 0 || len(set.Rules) > rules.MaxRules {
			t.Errorf("%d rules", len(set.Rules))
		}
		set.Matcher().Match(&rules.Subject{Tag: "a",
			Frames: []*rules.Frame{{Functions: []string{"forward"}, File: "x.py"}}, Level: "framework"})
	})
}
