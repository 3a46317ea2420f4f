package render

import (
	"bytes"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// timelineCase is a run of forty intervals: a model, steps whose memory rises and falls, two devices, a refusal, and
// nothing at both ends.
func timelineCase() *report.Timeline {
	t := &report.Timeline{By: "category", FromNS: 0, WidthNS: 1 << 22, EndNS: 40<<22 - 1000,
		Keys: []report.TimelineKey{{Key: "Feature maps"}, {Key: "Parameters"}, {Key: "Optimizer state"},
			{Key: "Gradients"}, {Key: "Workspace"}, {Key: "Others"}, {Key: "device", Label: "a label, with a comma"}}}
	framework, driver := report.TimelineLevel{Level: "framework"}, report.TimelineLevel{Level: "driver"}
	lines := map[string][]uint64{}
	for i := range 40 {
		var b, d report.TimelineBin
		var lane report.TimelineLane
		if i >= 4 && i < 38 {
			b.Held = []report.TimelinePart{{Key: 0, Bytes: uint64(i%8) * 64 * mib}, {Key: 1, Bytes: 100 * mib},
				{Key: 2, Bytes: 200 * mib}, {Key: 4, Bytes: 32 * mib}}
			d.Held = []report.TimelinePart{{Key: 6, Bytes: 1 << 30}}
			d.PeakBytes, b.Idle, b.Phase = 1<<30, uint64(i)*mib, []string{"forward", "backward", "", "optimizer"}[i%4]
			lane = report.TimelineLane{Steps: uint64(i % 3), FirstStep: uint64(i), LastStep: uint64(i + 1)}
			lane.Phases = []report.PhasePart{{Phase: "forward", NS: int64(i) << 16, Allocs: 3},
				{Phase: "backward", NS: 1 << 21, Allocs: 2}, {Phase: "optimizer", Allocs: 1}}[:i%4]
		}
		for _, p := range b.Held {
			b.PeakBytes += p.Bytes
		}
		switch b.PeakNS = int64(i)<<22 + 17; i {
		case 5:
			lane.Marks, lane.MarkNames = 5, []string{"loaded", "a\x1b[2Jb", "a mark with a long name"}
		case 20:
			lane.OOMs, lane.Epochs, lane.LastEpoch = 1, 1, 3
		}
		framework.Bins, driver.Bins, t.Lanes = append(framework.Bins, b), append(driver.Bins, d), append(t.Lanes, lane)
		for _, name := range []string{"driver", "reserved", "used"} {
			lines[name] = append(lines[name], d.PeakBytes/2)
		}
	}
	t.Levels, t.Phases = []report.TimelineLevel{framework, driver},
		[]report.PhaseSpan{{FromNS: 4 << 22, ToNS: 38 << 22}}
	for device := range int16(2) {
		for _, name := range []string{"driver", "reserved", "used"} {
			t.Lines = append(t.Lines, report.TimelineLine{Name: name, Device: device, PeakBytes: lines[name]})
		}
	}
	return t
}

// TestTimelineKeepsPeaks: for any number of rows, one of them has the peak.
func TestTimelineKeepsPeaks(t *testing.T) {
	s := trainingCase(1, 0)
	for rows := 1; rows <= 40; rows++ {
		var text bytes.Buffer
		if err := FindView("timeline").Text(&text, s, layout.Options{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "780.0 MiB") || strings.Contains(text.String(), "\x1b") {
			t.Errorf("%d rows:\n%s", rows, text.String())
		}
	}
}
