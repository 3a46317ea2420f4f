package oom

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// AdviceFacts is what advice may look at besides the event.
type AdviceFacts struct {
	Info trace.Info // of the run; nil: nothing is known
	Followed
}

func (f AdviceFacts) torch() bool { return f.Info["framework.torch"] != "" }

// expandable reports whether PyTorch's segments grow already.
func (f AdviceFacts) expandable() bool {
	return report.ExpandsSegments(AllocatorSettings(f.Info))
}

// adviceRule is one row of the table: when it applies, what it would give, and how to say it. Numbers that the text
// names with {braces} are sizes.
type adviceRule struct {
	name string
	// ask returns false where the rule does not apply. Otherwise frees is about how much following the advice would
	// give at this moment.
	ask func(e *report.OOMEvent, f AdviceFacts) (frees uint64, words map[string]string, applies bool)
	// rank puts rules before those of a higher one, whatever they free: what makes all other advice idle comes first,
	// remarks last.
	rank int
	text string
}

const (
	rankFirst  = -1
	rankSize   = 0
	rankRemark = 1
)

// Advise returns what to try, the most promising first.
func Advise(e *report.OOMEvent, f AdviceFacts) []report.Advice {
	type ranked struct {
		report.Advice
		rank int
	}
	var found []ranked
	for _, rule := range adviceRules {
		frees, words, applies := rule.ask(e, f)
		if !applies {
			continue
		}
		known := map[string]string{"asked": report.SizeText(e.RequestedBytes), "total": report.SizeText(e.TotalBytes),
			"frees": report.SizeText(frees), "device": deviceText(e.Device)}
		maps.Copy(known, words)
		found = append(found, ranked{report.Advice{Rule: rule.name, FreesBytes: frees, Text: fillIn(rule.text, known)},
			rule.rank})
	}
	if slices.ContainsFunc(found, func(r ranked) bool { return r.Rule == "larger-than-device" }) {
		found = slices.DeleteFunc(found, func(r ranked) bool {
			return r.Rule != "larger-than-device" && r.rank != rankRemark
		})
	}
	if slices.ContainsFunc(found, func(r ranked) bool { return r.Rule == "kept" }) {
		found = slices.DeleteFunc(found, func(r ranked) bool { return idleWhereKept(e, &r.Advice) })
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.FreesBytes, a.FreesBytes))
	})
	list := []report.Advice{}
	for _, r := range found {
		list = append(list, r.Advice)
	}
	if at := fragmentation(list); at >= 0 { // it has no figure yet
		setting := list[at]
		list = placed(slices.Delete(list, at, at+1), setting)
	}
	if len(list) > 0 && list[0].Rule == "larger-than-device" {
		return list
	}
	return leftByAttempts(merged(list, byCategory(e, f)), e, f)
}

// idleWhereKept reports whether advice is of no use while memory leaks: it says the same, or only puts off the next
// refusal.
func idleWhereKept(e *report.OOMEvent, a *report.Advice) bool {
	return slices.Contains([]string{"growing", "fragmentation"}, a.Rule) || slices.Contains(vagueAdvice, a.Rule) ||
		a.FreesBytes > 0 && a.FreesBytes < e.OwnBytes()/20
}

// fillIn puts words into the {braces} of a text.
func fillIn(text string, words map[string]string) string {
	var pairs []string
	for name, value := range words {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func deviceText(device int16) string {
	if device < 0 {
		return "the device"
	}
	return "device " + report.Number(uint64(device))
}

// missing is how much more room the request needs than there is, as far as known; 0 if there seems to be enough.
func missing(e *report.OOMEvent) uint64 {
	asked := max(e.RequestedBytes, e.DriverRequestedBytes)
	return asked - min(asked, e.FreeBytes)
}

// covers reports whether so many bytes are what is missing.
func covers(e *report.OOMEvent, bytes uint64) bool { return missing(e) > 0 && bytes >= missing(e) }

// sizeable reports whether so many bytes would help here: they cover what is missing, or are a good part of what the
// process has.
func sizeable(e *report.OOMEvent, bytes uint64) bool {
	return bytes > 0 && (covers(e, bytes) || bytes >= e.OwnBytes()/5)
}
