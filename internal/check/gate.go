package check

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/moment"
)

// Kinds of gates.
const (
	KindMax     = "max"     // a limit
	KindCompare = "compare" // with the baseline
	KindAssert  = "assert"  // something that must hold
)

// Gate is one condition.
type Gate struct {
	Kind    string
	Text    string  // as it is written, after the flag
	Subject Subject // unless KindAssert
	Limit   Amount  // at most, of KindMax; the tolerance, of KindCompare; at least, of released-after

	Assert string    // name of the condition
	From   moment.At // of the conditions about a part of the run
	To     moment.At
	Names  []string // libraries, or findings and severities
}

// name is a gate in results: a comparison with its tolerance.
func (g *Gate) name() string {
	if g.Kind == KindCompare {
		return g.Text + " +" + g.Limit.String()
	}
	return g.Text
}

// ParseMax reads SUBJECT=LIMIT.
func ParseMax(text string) (Gate, error) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		_, _, err := parseSubject(text)
		if err == nil {
			err = fmt.Errorf("%q has no limit; write %s=LIMIT, such as peak=10GiB", text, text)
		}
		return Gate{}, err
	}
	subject, kind, err := parseSubject(text[:at])
	if err != nil {
		return Gate{}, err
	}
	limit, err := kind.parse(text[at+1:])
	if err != nil {
		return Gate{}, fmt.Errorf("%s: %w", subject, err)
	}
	return Gate{Kind: KindMax, Text: subject.String(), Subject: subject, Limit: limit}, nil
}

// ParseCompare reads a subject that is compared with the baseline.
func ParseCompare(text string, tolerance Amount) (Gate, error) {
	subject, kind, err := parseSubject(text)
	switch {
	case err != nil:
		return Gate{}, err
	case kind.name == "growth" || kind.name == "rank-spread":
		return Gate{}, fmt.Errorf("%s is not compared with a baseline; give it a limit with --max", kind.name)
	}
	return Gate{Kind: KindCompare, Text: subject.String(), Subject: subject, Limit: tolerance}, nil
}

// DefaultCompare are the subjects that are compared where none is named. Pinned memory is known at its peak only.
func DefaultCompare(atMoment bool) []string {
	if atMoment {
		return []string{"peak"}
	}
	return []string{"peak", "pinned"}
}

// ParseTolerance reads by how much a figure may exceed its baseline.
func ParseTolerance(text string) (Amount, error) { return parsePercent(text) }

// ParseFailOn reads SUBJECT>PERCENT or SUBJECT>SIZE: by how much a figure may grow.
func ParseFailOn(text string) (Gate, error) {
	at := strings.LastIndexByte(text, '>') // names may have one, such as train.py:9 <lambda>
	if at < 0 {
		return Gate{}, fmt.Errorf("%q: write a figure and by how much it may grow, such as 'peak>1%%'", text)
	}
	parse, limit := parseBytes, strings.TrimPrefix(text[at+1:], "=")
	if strings.Contains(limit, "%") {
		parse = parsePercent
	}
	tolerance, err := parse(limit)
	if err != nil {
		return Gate{}, err
	}
	return ParseCompare(text[:at], tolerance)
}

// Conditions.
const (
	noDriverAlloc = "no-driver-alloc-after"
	releasedAfter = "released-after"
	onlyLibrary   = "only-library"
	noFinding     = "no-finding"
)

// AssertNames lists the conditions, as they are written.
func AssertNames() []string {
	return []string{noDriverAlloc + "=", releasedAfter + "=", onlyLibrary + "=", noFinding + "="}
}

// ParseAssert reads CONDITION=VALUE.
func ParseAssert(text string) (Gate, error) {
	name, value, found := strings.Cut(strings.TrimSpace(text), "=")
	g := Gate{Kind: KindAssert, Text: strings.TrimSpace(text), Assert: name}
	known := AssertNames()
	if !slices.Contains(known, name+"=") {
		return g, fmt.Errorf("unknown condition %q; %s", name, choose(name, known, "choose from"))
	}
	if value = strings.TrimSpace(value); !found || value == "" {
		return g, fmt.Errorf("%s needs a value, such as %s", name, map[string]string{
			noDriverAlloc: noDriverAlloc + "=step:3", releasedAfter: releasedAfter + "=mark:sleep>=90%",
			onlyLibrary: onlyLibrary + "=libc10_cuda.so", noFinding: noFinding + "=warning"}[name])
	}
	var err error
	switch name {
	case noDriverAlloc:
		g.From, err = parseBegin(value)
	case releasedAfter:
		err = g.parseReleased(value)
	case noFinding:
		g.Names = names(value)
		err = checkFindings(g.Names)
	default:
		g.Names = names(value)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return g, err
}

func names(value string) (list []string) {
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// parseBegin reads the moment at which a part of the run begins.
func parseBegin(text string) (moment.At, error) {
	at, err := moment.Parse(strings.TrimSpace(text))
	if err == nil && at.IsZero() {
		err = fmt.Errorf("name a moment, such as step:3")
	}
	if at.Kind == moment.Peak || at.Kind == moment.Exit {
		err = fmt.Errorf("no part of a run begins at %s; name mark:NAME, step:N, iteration:N, teardown, oom or a time", at)
	}
	return at, err
}

// parseReleased reads MOMENT>=PERCENT or MOMENT..MOMENT>=PERCENT.
func (g *Gate) parseReleased(value string) error {
	at := strings.LastIndex(value, ">=") // the name of a mark may have it, too
	if at < 0 {
		return fmt.Errorf("%q says not how much; write MOMENT>=PERCENT, such as mark:sleep>=90%%", value)
	}
	span, part := value[:at], value[at+len(">="):]
	var err error
	if g.Limit, err = parsePercent(part); err != nil {
		return err
	}
	if g.Limit.Value > 100 {
		return fmt.Errorf("%s: at most 100%% can be released", part)
	}
	begin, end, ends := strings.Cut(span, "..")
	if g.From, err = parseBegin(begin); err != nil || !ends {
		return err
	}
	if g.To, err = moment.Parse(strings.TrimSpace(end)); err != nil {
		return err
	}
	if g.To.IsZero() || moment.CheckWindow(g.From, g.To) != nil {
		return fmt.Errorf("%q is no part of a run: name two moments in their order, such as mark:sleep..mark:wake", span)
	}
	return nil
}

// severities are those of findings, the worst first.
var severities = []string{report.SeverityAlarm, report.SeverityWarning, report.SeverityAdvice, report.SeverityInfo}

// checkFindings refuses names of findings that do not exist.
func checkFindings(list []string) error {
	known := slices.Clone(severities)
	for _, k := range report.FindingKinds {
		known = append(known, k.ID)
	}
	for _, name := range list {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no finding or severity %q; %s", name,
				choose(name, known, "docs/findings.md lists them, such as"))
		}
	}
	return nil
}
