package render

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"
)

// outsideGoldens are the fields that no case in testdata has, as expressions of paths, with what a case would need.
// Tests of the package analyzer and of internal/e2e have such traces.
var outsideGoldens = []struct{ field, needs string }{
	{`^report\.training\b`, "a training stream"},
	{`^report\.verdict\.(category|module|iteration|phase)\b`, "a training stream"},
	{`^report\.(loaded_twice_bytes|parameter_copies(\..*)?|oom\.retries\.step_time_ns)$`, "a training stream"},
	{`^diff\.(parameters|verdict\.causes\.(with|since|alike|alike_count)|groups\.rows\.since)\b`, "a training stream"},
	{`^report\.(timeline|cross|window)\b`, "another question"},
	{`^diff\.(base|new)\.(window|path)\b`, "another question"},
	{`^report\..*\.requested(_at_peak|_live)?(\.|$)`, "an allocator that tells what was requested"},
	{`\.sites\.rest_bytes$`, "an allocator that tells what was requested"},
	{`\.label$`, "keys that people cannot read"},
	{`\.floor_bytes$`, "a long run that leaks little"},
	{`^report\.division\.rows\.(operator|inner)\b`, "rows below a function"},
	{`^report\.(sites\.places\.cut|health\.stacks\.native_cut\.\*)$`, "native stacks that are not whole"},
	{`^report\.allocator\.(free_memory_asked|memory_fractions|settings)\.`, "calls of PyTorch that set its allocator"},
	{`\.waiting_bytes$`, "blocks that wait for other streams"},
	{`^report\..*\.before_loss$`, "a loss after the moment"},
	{`^report\.oom\.events\.(lost_records|(ledgers|since)\.rows\.bytes_lower)$`, "a loss before an OOM event"},
	{`^report\.oom\.events\.(ledgers|since)\.rows\.sites\b`, "an OOM event with call stacks"},
	{`^report\.oom\.(events\.sidecar_file|retries\.(as_much|granted)_.*)$`, "a sidecar file, or a retry that is granted"},
	{`^report\.own_accounts\b`, "frameworks that are asked at the end"},
	{`^report\.health\.(damaged|restored_at|no_end)\b`, "a damaged file, or one without its end"},
	{`^report\.thinned\b`, "a thinned file"},
	{`^report\.(other_)?trends?\.(owners\.|full_in_seconds$|bytes_per_iteration$)`, "a program that grows"},
	{`^diff\.(base|new)\.growing\b`, "a program that grows"},
	{`^report\.kept_by\.allocated_bytes$`, "a program that grows"},
	{`\.process\.(began_after_ns|exit_status|signal|stopped)$`, "a recorder that joined late, or saw how it ended"},
	{`\.process\.(container|job|pod|rank|world_size)$`, "a process of a container, or one of several ranks"},
	{`\.process\.(imported|snapshot)$`, "a trace that another program wrote"},
	{`^diff\.base\.bounds\b`, "a base that lost records; what the new run has is the same type"},
	{`^diff\..*\.(alloc_bytes|alloc_count|failed_count)\.(base_lower|new_lower|certain)$`, "bounds, which only what is held has"},
	{`^diff\.levels\.failed_count\.percent$`, "failures in the base"},
}

// TestGoldensHoldEveryField: every field that the JSON can have is in the JSON of a case, or is listed in
// outsideGoldens.
func TestGoldensHoldEveryField(t *testing.T) {
	known := make(map[string]string)
	fieldKinds(known, published["report"], "report")
	fieldKinds(known, published["diff"], "diff")
	missing := maps.Clone(known)
	for _, path := range goldenPaths(t) {
		g := readGolden(t, path)
		of := "report"
		if g.part("base") != "" {
			of = "diff"
		}
		removePaths(missing, known, decoded[any](t, json.RawMessage(g.part("json"))), of)
	}
	excused := make(map[string]bool)
	for _, outside := range outsideGoldens {
		pattern, used := regexp.MustCompile(outside.field), false
		for path := range known {
			if pattern.MatchString(path) {
				excused[path], used = true, true
			}
		}
		if !used {
			t.Errorf("outsideGoldens: no field is like %s", outside.field)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(known)) {
		switch {
		case missing[path] != "" && !excused[path]:
			t.Errorf("no case in testdata has %s in its JSON: add it to one, or to outsideGoldens", path)
		case missing[path] == "" && excused[path]:
			t.Errorf("outsideGoldens has %s, but so does a case", path)
		}
	}
}

// removePaths removes the paths that JSON holds.
func removePaths(paths, known map[string]string, value any, path string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			removePaths(paths, known, element, path)
		}
	case map[string]any:
		for name, field := range value {
			below := path + "." + name
			if known[path+".*"] != "" {
				below = path + ".*"
			}
			delete(paths, below)
			removePaths(paths, known, field, below)
		}
	}
}
