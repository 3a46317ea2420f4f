package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// DiffVerdict describes in a few sentences by how much the memory changed, what changed with it, and which of the runs
// grows.
func DiffVerdict(d *diff.Diff) string {
	return peakVerdict(d) + growthVerdict(d)
}

// growthVerdict compares the growth of two runs, "" where neither grows.
func growthVerdict(d *diff.Diff) string {
	base, changed := d.Base.Growing, d.New.Growing
	switch {
	case d.SameRun || d.Verdict == nil || len(base)+len(changed) == 0:
		return ""
	case len(changed) == 0:
		return " In the base, " + growthWords(d, base) + " The new run " + notGrowing(d.New.Growth) + "."
	case len(base) == 0:
		return " In the new run, " + growthWords(d, changed) + " The base " + notGrowing(d.Base.Growth) + "."
	}
	return " In both runs memory grows; in the new one, " + growthWords(d, changed)
}

func notGrowing(growth string) string {
	if growth == report.GrowthUnknown {
		return "has too little to judge growth by"
	}
	return "does not grow"
}

func growthWords(d *diff.Diff, list []*report.Trend) string {
	text := layout.Growth(list[0], d.Verdict.Level)
	return strings.ToLower(text[:1]) + text[1:]
}

func peakVerdict(d *diff.Diff) string {
	v := d.Verdict
	if v == nil || v.Bytes.Base == 0 && v.Bytes.New == 0 && len(d.Levels) == 0 {
		return "Neither run made a CUDA memory call."
	}
	what := levelTitle(d) + " peak"
	base, changed := ofMoments(d)
	switch {
	case base != changed:
		what = fmt.Sprintf("%s memory, from %s to %s:", levelTitle(d), strings.TrimPrefix(base, "at "),
			strings.TrimPrefix(changed, "at "))
	case base != "peak":
		what = levelTitle(d) + " memory " + base
	}
	if v.Bytes.Delta == 0 {
		return fmt.Sprintf("%s unchanged, %s.", what, layout.Bytes(v.Bytes.New))
	}
	text := fmt.Sprintf("%s %s", what, layout.SignedBytes(v.Bytes.Delta))
	if percent := percentChange(v.Bytes); percent != "" {
		text += " (" + percent + ")"
	}
	text += fmt.Sprintf(", %s to %s", layout.Bytes(v.Bytes.Base), layout.Bytes(v.Bytes.New))
	if v.Bytes.Certain != nil && !*v.Bytes.Certain {
		text += ", which is not certain, since records were lost"
	}
	for i, c := range v.Causes {
		text += map[bool]string{true: ": ", false: "; "}[i == 0] + causeWords(&c)
	}
	return text + "."
}

func levelTitle(d *diff.Diff) string {
	if d.Verdict.Level == "framework" {
		return layout.UpperFirst(layout.FrameworkName(d.New.Versions))
	}
	return layout.UpperFirst(d.Verdict.Level)
}

// causeWords names a cause: "6 new buffers net.blocks.{0..5}.mask (+6.00 MiB)".
func causeWords(c *diff.Cause) string {
	bytes := " (" + layout.SignedBytes(c.Delta) + ")"
	if c.By != "parameters" {
		if c.State == diff.StateNew || c.State == diff.StateGone {
			bytes = " (" + stateWord(c.State) + ", " + layout.SignedBytes(c.Delta) + ")"
		}
		return "by " + c.By + " " + sanitize.Text(c.Name) + bytes
	}
	kind := map[string]string{"parameter": "parameter", "buffer": "buffer", "optimizer": "optimizer state"}[c.Kind]
	if kind == "" {
		kind = "parameter"
	}
	if c.Count > 1 && c.Kind != "optimizer" {
		kind += "s"
	}
	words := strings.TrimSpace(stateWord(c.State) + " " + kind)
	if c.Count > 1 {
		words = fmt.Sprintf("%d %s", c.Count, words)
	}
	if c.With != "" {
		bytes = fmt.Sprintf(" (%s with %s)", layout.SignedBytes(c.Delta), c.With)
	}
	return words + " " + sanitize.Text(c.Name) + bytes
}

func stateWord(state string) string {
	return map[string]string{diff.StateNew: "new", diff.StateGone: "removed", diff.StateGrew: "larger",
		diff.StateShrank: "smaller"}[state]
}
