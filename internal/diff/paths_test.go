package diff

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// TestDiffMatchesPaths compares runs of one program whose files have other paths.
func TestDiffMatchesPaths(t *testing.T) {
	const inductor = "cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopq2"
	other := strings.ReplaceAll(inductor, "2", "z")
	for _, test := range []struct {
		name, by      string
		base, changed []string
		want          []string // "base -> new" or a single key, sorted
		note          string
	}{
		{"two checkouts", "site", []string{"main/train.py:7 main", "main/net/a.py:3 f",
			"backward of main/net/a.py:3 f"},
			[]string{"pr/train.py:7 main", "pr/net/a.py:3 f", "backward of pr/net/a.py:3 f"},
			[]string{"backward of main/net/a.py:3 f -> backward of pr/net/a.py:3 f",
				"main/net/a.py:3 f -> pr/net/a.py:3 f",
				"main/train.py:7 main -> pr/train.py:7 main"},
			"Files in main in the base were compared with files in pr in the new run."},
		{"another line as well", "site", []string{"main/a.py:3 f"}, []string{"pr/a.py:9 f"},
			[]string{"main/a.py:3 f -> pr/a.py:9 f"}, "1 site moved to another line"},
		{"from within", "site", []string{"train.py:7 main", "net/a.py:3 f"}, []string{"pr/train.py:7 main",
			"pr/net/a.py:3 f"},
			[]string{"net/a.py:3 f -> pr/net/a.py:3 f", "train.py:7 main -> pr/train.py:7 main"},
			"Files without a folder before them in the base were compared with files in pr"},
		{"the same names in two folders", "line", []string{"main/a/util.py:1", "main/b/util.py:2"},
			[]string{"pr/a/util.py:1", "pr/b/util.py:2"},
			[]string{"main/a/util.py:1 -> pr/a/util.py:1", "main/b/util.py:2 -> pr/b/util.py:2"}, ""},
		{"some files have their paths", "inner", []string{"torch/x.py:1 g", "main/a.py:3 f"},
			[]string{"torch/x.py:1 g", "pr/a.py:3 f"},
			[]string{"main/a.py:3 f -> pr/a.py:3 f", "torch/x.py:1 g"}, ""},
		{"a renamed script", "site", []string{"a/train.py:3 f", "a/train.py:7 <module>", "backward of a/train.py:3 f"},
			[]string{"train2.py:4 f", "train2.py:9 <module>", "backward of train2.py:4 f"},
			[]string{"a/train.py:3 f -> train2.py:4 f", "a/train.py:7 <module> -> train2.py:9 <module>",
				"backward of a/train.py:3 f -> backward of train2.py:4 f"},
			"a/train.py in the base was compared with train2.py in the new run: they have the same functions."},
		{"one function alike", "site", []string{"a.py:3 main"}, []string{"b.py:3 main"}, []string{"a.py:3 main",
			"b.py:3 main"}, ""},
		{"copies of a script", "site", []string{"a.py:3 f", "a.py:4 g"}, []string{"b.py:3 f", "b.py:4 g", "c.py:3 f",
			"c.py:4 g"}, []string{"a.py:3 f", "a.py:4 g", "b.py:3 f", "b.py:4 g", "c.py:3 f", "c.py:4 g"}, ""},
		{"nobody can tell", "site", []string{"a/util.py:1 f"}, []string{"b/util.py:1 f", "c/util.py:1 f"},
			[]string{"a/util.py:1 f", "b/util.py:1 f", "c/util.py:1 f"}, ""},
		{"other functions", "site", []string{"main/a.py:3 f"}, []string{"pr/a.py:3 g"}, []string{"main/a.py:3 f",
			"pr/a.py:3 g"}, ""},
		{"files", "file", []string{"main/a.py", "autograd"}, []string{"pr/a.py", "autograd"},
			[]string{"autograd", "main/a.py -> pr/a.py"}, ""},
		{"functions", "function", []string{"f (main/a.py)", "g (libx.so)"}, []string{"f (pr/a.py)", "g (libx.so)"},
			[]string{"f (main/a.py) -> f (pr/a.py)", "g (libx.so)"}, ""},
		{"cells", "site", []string{"ipykernel_4711/1234567890.py:2 <module>", "ipykernel_4711/99887766.py:2 <module>"},
			[]string{"ipykernel_815/1234567890.py:2 <module>", "ipykernel_815/55443322.py:2 <module>"},
			[]string{"ipykernel_4711/1234567890.py:2 <module> -> ipykernel_815/1234567890.py:2 <module>",
				"ipykernel_4711/99887766.py:2 <module> -> ipykernel_815/55443322.py:2 <module>"},
			"Generated files"},
		{"PyG", "site", []string{"message_passing/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_ab12cd34.py:70 collect"},
			[]string{"message_passing/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_zyxwvuts.py:72 collect"},
			[]string{"message_passing/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_ab12cd34.py:70 collect -> " +
				"message_passing/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_zyxwvuts.py:72 collect"},
			"matched by their functions"},
		{"Inductor", "inner", []string{"ab/" + inductor + ".py:5 call"}, []string{"cd/" + other + ".py:5 call"},
			[]string{"ab/" + inductor + ".py:5 call -> cd/" + other + ".py:5 call"}, "Generated files"},
		{"two of one kind", "site", []string{"job/tmpa1b2c3d4.py:5 f", "job/tmpa1b2c3d5.py:5 f"},
			[]string{"job/tmpz9y8x7w6.py:5 f"},
			[]string{"job/tmp*.py:5 f"}, ""},
		{"a temporary folder", "site", []string{"tmpa1b2c3d4/model.py:5 f"}, []string{"tmpz9y8x7w6/model.py:5 f"},
			[]string{"tmpa1b2c3d4/model.py:5 f -> tmpz9y8x7w6/model.py:5 f"}, ""},
		{"a temporary name", "site", []string{"job/tmpa1b2c3d4.py:5 f"}, []string{"job/tmpz9y8x7w6.py:5 f"},
			[]string{"job/tmpa1b2c3d4.py:5 f -> job/tmpz9y8x7w6.py:5 f"}, ""},
		{"names that are not made up", "site", []string{"model_training.py:5 f"}, []string{"model_baseline.py:5 f"},
			[]string{"model_baseline.py:5 f", "model_training.py:5 f"}, ""},
	} {
		base, changed := &report.Summary{Groups: []report.Group{*groupOf(test.by, test.base...)}},
			&report.Summary{Groups: []report.Group{*groupOf(test.by, test.changed...)}}
		d := New(base, changed)
		var got []string
		for _, r := range d.Groups[0].Rows {
			if r.BaseKey != "" {
				r.Key = r.BaseKey + " -> " + r.Key
			}
			got = append(got, r.Key)
		}
		slices.Sort(got)
		if slices.Sort(test.want); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q\nwant %q", test.name, got, test.want)
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %q, want %q", test.name, notes, test.note)
		}
	}
}
