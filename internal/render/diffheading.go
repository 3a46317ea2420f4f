package render

import (
	"cmp"
	"fmt"
	"slices"
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
		return " In the base, " + growthWords(d, base) + notGrowing("The new run", d.New.Growth)
	case len(base) == 0:
		return " In the new run, " + growthWords(d, changed) + notGrowing("The base", d.Base.Growth)
	}
	return " In both runs memory grows; in the new one, " + growthWords(d, changed)
}

func notGrowing(run, growth string) string {
	if growth == report.GrowthUnknown {
		return " Whether " + layout.LowerFirst(run) + " grows as well is not known."
	}
	return " " + run + " does not grow."
}

func growthWords(d *diff.Diff, list []*report.Trend) string {
	return layout.LowerFirst(layout.Growth(list[0], d.Verdict.Level))
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

// causeWords names a cause: "6 new buffers, net.blocks.{0..5}.mask (+6.00 MiB)", and others that changed by as much:
// "by module a and b (+6.00 MiB each)".
func causeWords(c *diff.Cause) string {
	name, bytes := alikeNames(c), layout.SignedBytes(c.Delta)
	if c.AlikeCount > 0 {
		bytes += " each"
	}
	if c.By != "parameters" {
		switch {
		case c.Since != "":
			bytes += ", since " + sanitize.Text(c.Since) + " is wider"
		case c.State == diff.StateNew || c.State == diff.StateGone:
			bytes = stateWord(c.State) + ", " + bytes
		}
		return "by " + c.By + " " + name + " (" + bytes + ")"
	}
	kind := map[string]string{"parameter": "parameter", "buffer": "buffer", "optimizer": "optimizer state"}[c.Kind]
	if kind == "" {
		kind = "parameter"
	}
	kind = strings.TrimSpace(stateWord(c.State) + " " + kind)
	if count := c.Count * (1 + c.AlikeCount); count > 1 {
		if c.Kind != "optimizer" { // else there is no number of it
			kind = fmt.Sprintf("%d %ss", count, kind)
		}
		kind += ","
	}
	if c.With != "" {
		bytes += " with " + c.With
	}
	return kind + " " + name + " (" + bytes + ")"
}

// alikeNames names a cause and what changed as it did.
func alikeNames(c *diff.Cause) string {
	names := append([]string{c.Name}, c.Alike...)
	if more := c.AlikeCount - len(c.Alike); more > 0 {
		names = append(names, layout.Count(uint64(more))+" more alike")
	}
	for i := range names {
		names[i] = sanitize.Text(names[i])
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func stateWord(state string) string {
	return map[string]string{diff.StateNew: "new", diff.StateGone: "removed", diff.StateGrew: "larger",
		diff.StateShrank: "smaller"}[state]
}

// followed says of modules that grew since another is wider.
func followed(rows []diff.FoldedRow) (list []string) {
	for i := range rows {
		if r := &rows[i].Row; r.Since != "" {
			list = append(list, sanitize.Text(fmt.Sprintf("%s grew since %s is wider.", r.Title(), r.Since)))
		}
	}
	return list
}

// nextDiffs are the commands that show more of a difference of two peaks.
func nextDiffs(d *diff.Diff, o layout.Options) (list []nextCommand) {
	if o.Path == "" || d.Base.Path == "" || o.AllLevels || d.SameRun || len(d.Levels) == 0 || d.Base.Window != nil ||
		d.New.Window != nil || d.Base.Moment != "peak" || d.New.Moment != "peak" {
		return nil
	}
	traces := layout.ShellWord(d.Base.Path) + " " + layout.ShellWord(d.New.Path)
	by := nextCommand{"memtrace diff --by site,operator " + traces, "by line and operator"}
	if len(d.Parameters) > 0 {
		by = nextCommand{"memtrace diff --by module " + traces, "by layer of the model"}
	}
	list = append(list, by)
	if slices.ContainsFunc(d.Parameters, func(p diff.Parameter) bool { return p.State != diff.StateSame }) {
		list = append(list, nextCommand{"memtrace diff --view parameters " + traces, "by parameter"})
	}
	return append(list, nextCommand{"memtrace html " + traces, "as a page"})
}

// diffHeading begins with the change, and names the compared runs.
func (p *diffPage) diffHeading(d *diff.Diff) {
	p.Title("memtrace diff")
	p.Gap()
	for _, part := range layout.Wrap(DiffVerdict(d), p.Columns()-2) {
		p.Line("  %s", p.Paint(layout.Strong, part))
	}
	p.Gap()
	base, changed := sideSoftware(d.Base), sideSoftware(d.New)
	switch {
	case d.SameRun:
		p.diffSide("run", d.New, base, "")
		p.Field("base", sideMoment(d.Base))
		p.Field("new", sideMoment(d.New))
	case base == changed:
		p.diffSide("base", d.Base, "", momentUnlessPeak(d.Base))
		p.diffSide("new", d.New, "", momentUnlessPeak(d.New))
		if base != "" {
			p.Field("both", base)
		}
	default:
		p.diffSide("base", d.Base, base, momentUnlessPeak(d.Base))
		p.diffSide("new", d.New, changed, momentUnlessPeak(d.New))
	}
	p.Gap()
}

// sideSoftware is what a run used.
func sideSoftware(side diff.Side) string {
	parts := []string{}
	if versions := layout.Software(side.Versions); versions != "" {
		parts = append(parts, versions)
	}
	if side.NullGPU {
		parts = append(parts, "null GPU")
	}
	return strings.Join(parts, ", ")
}

// diffSide names a run in one line, if it is short: reports have the rest.
func (p *diffPage) diffSide(name string, side diff.Side, software, at string) {
	text := cmp.Or(layout.Command(side.Process), "unknown")
	if side.Process.Imported != "" {
		text = "imported: " + sanitize.Text(side.Process.Imported)
	} else if ending := layout.Ending(side.Process); ending != "" {
		text += "; " + ending
	}
	if side.Path != "" {
		text = sanitize.Text(side.Path) + " (" + text + ")"
	}
	if text += at; software != "" {
		text += ", " + software
	}
	p.Field(name, text)
	if side.Window != nil {
		p.Styled(layout.Strong, "", "window "+layout.Window(side.Window, side.Process.DurationNS))
	}
}

// sideMoment describes the moment of a side.
func sideMoment(side diff.Side) string {
	text := layout.Moment(side.TimeNS)
	if side.Moment == "peak" {
		return "the peak, " + text
	}
	return sanitize.Text(side.Moment) + ", " + text
}

func momentUnlessPeak(side diff.Side) string {
	if side.Moment == "peak" {
		return ""
	}
	return ", at " + sideMoment(side)
}
