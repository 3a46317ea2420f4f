package check

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"memtrace/analyzer/report"
	"memtrace/internal/rules/rulefile"
)

// accounts of other memory, by subject.
var accounts = map[string]string{"pinned": "host", "managed": "managed"}

// measure returns the subject's figure in a summary, in the unit of a limit; of an owner that at the peak of all.
func measure(s *report.Summary, findings []report.Finding, sub Subject, unit string) (Amount, error) {
	if account, other := accounts[sub.Kind]; other {
		if s.At != nil {
			return Amount{}, fmt.Errorf("%s memory is known at its peak only; leave out --at", account)
		}
		return Amount{float64(s.Other[account].PeakBytes), Bytes}, nil
	}
	switch {
	case sub.Kind == "growth":
		return growth(s, unit)
	case sub.Kind == "driver" && !s.Framework.Empty():
		return Amount{}, fmt.Errorf("CUDA memory is what the framework's allocator reserved: %w", errReserved)
	case sub.Kind == "driver":
		return Amount{float64(s.Driver.PeakBytes), Bytes}, nil
	}
	if err := hasLevel(s, findings); err != nil {
		return Amount{}, err
	}
	switch sub.Kind {
	case "peak":
		return Amount{float64(s.Main().PeakBytes), Bytes}, nil
	case "requested":
		return requested(s)
	case "library":
		bytes, err := libraryBytes(s, sub)
		return Amount{float64(bytes), Bytes}, err
	}
	rows, err := ownerRows(s, sub)
	sum := uint64(0)
	for _, r := range rows {
		sum += r.PeakBytes
	}
	return Amount{float64(sum), Bytes}, err
}

// hasLevel refuses a trace whose framework reported no blocks: only what it reserved is known.
func hasLevel(s *report.Summary, findings []report.Finding) error {
	i := slices.IndexFunc(findings, func(f report.Finding) bool { return f.ID == "silent-framework" })
	if i >= 0 && s.Framework.Empty() {
		return fmt.Errorf("the trace has no events of the framework's allocator, so that CUDA memory may be what it reserved; if it is not, use driver instead. %s",
			strings.TrimSuffix(findings[i].Text, "."))
	}
	return nil
}

// requested is the most that may have been requested: blocks of which that is not known count at their size.
func requested(s *report.Summary) (Amount, error) {
	if s.MainLevel() == report.LevelDriver {
		return Amount{float64(s.Driver.PeakBytes), Bytes}, nil
	}
	r := s.Framework.RequestedAtPeak
	if r == nil {
		return Amount{}, fmt.Errorf("the trace does not have what was requested of the framework's allocator; PyTorch reports it from 2.1 on")
	}
	return Amount{float64(r.Bytes + r.UnknownBytes), Bytes}, nil
}

// unknownRequest is the part of a figure, in bytes, that counts at the size of its blocks since the request is not
// known.
func unknownRequest(s *report.Summary, sub Subject) uint64 {
	if r := s.Framework.RequestedAtPeak; sub.Kind == "requested" && r != nil {
		return r.UnknownBytes
	}
	return 0
}

// growth is that of the kind of memory that grows most, however little: the limit is the gate's; 0 where none does.
// What is too little to be called growth counts where it is known in the unit, and fails no gate elsewhere.
func growth(s *report.Summary, unit string) (Amount, error) {
	if s.GrowthKind() == report.GrowthUnknown {
		return Amount{}, fmt.Errorf("growth cannot be judged: the run is too short, records were lost, what grew was given back at the end, or iterations are not known; call memtrace.step() in the loop")
	}
	most := Amount{0, unit}
	for _, t := range s.Rising() {
		value := map[string]float64{Bytes: float64(t.Bytes), BytesPerStep: float64(t.BytesPerIteration),
			BytesPerSec: t.BytesPerSecond}[unit]
		if t.Kind == report.GrowthSteady {
			if err := uncounted(s.NullGPU, t, unit); err != nil {
				return Amount{}, err
			}
		}
		most.Value = max(most.Value, value)
	}
	return most, nil
}

// uncounted is the error of a gate on growth whose unit the trace does not have, with those that it has: the iterations
// that are inferred for the report may be rounds of a loop within one, and are no steps.
func uncounted(nullGPU bool, t *report.Trend, unit string) error {
	const call = "call memtrace.step() in the loop"
	stepped := t.BytesPerIteration > 0
	switch {
	case unit == BytesPerStep && !stepped && nullGPU:
		return fmt.Errorf("memory grows, but the trace has no steps; limit it in total, or %s", call)
	case unit == BytesPerStep && !stepped:
		return fmt.Errorf("memory grows, but the trace has no steps; limit it per second or in total, or %s", call)
	case unit == BytesPerSec && nullGPU && stepped:
		return fmt.Errorf("memory grows, but on the null GPU a second says nothing: limit it per step, or in total")
	case unit == BytesPerSec && nullGPU:
		return fmt.Errorf("memory grows, but on the null GPU a second says nothing: limit it in total, or %s", call)
	}
	return nil
}

// ownerRows are the rows of the main level that belong to the subject.
func ownerRows(s *report.Summary, sub Subject) (rows []report.Row, err error) {
	group := s.Group(sub.Kind, s.MainLevel())
	if group == nil {
		return nil, fmt.Errorf("nothing is known by %s: the file has no such division", sub.Kind)
	}
	if sub.Kind == "category" {
		if sub.Name, err = categoryName(s, group, sub.Name); err != nil {
			return nil, err
		}
	}
	matches, known := sub.matcher(), []string{}
	for _, r := range group.Rows {
		switch {
		case matches(r.Key):
			rows = append(rows, r)
		case report.NamesOwner(r.Key):
			known = append(known, r.Key)
		}
	}
	if len(rows) == 0 && sub.Kind != "category" {
		return nil, noSuch(sub, known)
	}
	return rows, nil
}

// noSuch is the error on an owner that no row has.
func noSuch(sub Subject, known []string) error {
	kind := sub.Kind
	if len(known) == 0 {
		plural := map[string]string{"library": "libraries", "category": "categories"}[kind]
		if plural == "" {
			plural = kind + "s"
		}
		return &absentError{fmt.Sprintf("no such %s; the trace has no %s at all", kind, plural)}
	}
	near := nearest(sub.Name, known)
	for _, name := range known { // a word of a longer name
		if begin := name[:min(len(name), len(sub.Name))]; near == "" && nearest(sub.Name, []string{begin}) != "" {
			near = name
		}
	}
	if near != "" {
		return &absentError{fmt.Sprintf("no such %s; the trace has %s", kind, near)}
	}
	more := ""
	if n := len(known) - namesShown; n > 0 {
		known, more = known[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	return &absentError{fmt.Sprintf("no such %s; the trace has %s%s", kind, strings.Join(known, ", "), more)}
}

// categoryName completes the beginning of a category's name, in any case. A category that holds nothing in a trace is
// one nevertheless.
func categoryName(s *report.Summary, group *report.Group, name string) (string, error) {
	all := presetCategories()
	for _, r := range group.Rows {
		if !slices.Contains(all, r.Key) {
			all = append(all, r.Key)
		}
	}
	matches := Subject{"category", name}.matcher()
	if slices.ContainsFunc(all, matches) {
		return name, nil
	}
	var begins []string
	for _, c := range all {
		if len(c) >= len(name) && strings.EqualFold(c[:len(name)], name) {
			begins = append(begins, c)
		}
	}
	switch len(begins) {
	case 0:
		return "", noSuch(Subject{"category", name}, all)
	case 1:
		return begins[0], nil
	}
	return "", fmt.Errorf("category %s may be %s", name, strings.Join(begins, " or "))
}

// presetCategories are those of the rules that a checked summary is made with.
var presetCategories = sync.OnceValue(func() (list []string) {
	set, err := rulefile.Preset(rulefile.Default)
	if err != nil {
		return nil
	}
	for _, rule := range set.Rules {
		if !slices.Contains(list, rule.Category) {
			list = append(list, rule.Category)
		}
	}
	return slices.Clip(list)
})

// libraryBytes is the CUDA memory of a library, at the peak of all or of the framework's blocks, whichever is more.
// What a framework's allocator took from the driver is reserved memory.
func libraryBytes(s *report.Summary, sub Subject) (sum uint64, err error) {
	group, ledger := s.Group("library", report.LevelDriver), s.Ledger("library")
	if group == nil {
		return 0, fmt.Errorf("nothing is known by library: the file has no such division")
	}
	matches, found, known := sub.matcher(), false, []string{}
	for _, r := range group.Rows {
		switch {
		case matches(r.Key):
			found = true
			sum += r.PeakBytes
		case report.KnownKey(r.Key):
			known = append(known, r.Key)
		}
	}
	if !found {
		return 0, noSuch(sub, known)
	}
	owner := report.OwnerBlocks
	if s.MainLevel() == report.LevelFramework {
		owner = report.OwnerOutside
		if blocks := s.Group("library", report.LevelFramework); blocks != nil && slices.ContainsFunc(blocks.Rows,
			func(r report.Row) bool { return matches(r.Key) }) {
			return 0, fmt.Errorf("it is the library of the framework's allocator: %w", errReserved)
		}
	}
	if ledger == nil {
		return sum, nil
	}
	atBlocks := uint64(0)
	for _, r := range ledger.Rows {
		if r.Owner == owner && matches(r.Key) {
			atBlocks += r.Bytes
		}
	}
	return max(sum, atBlocks), nil
}
