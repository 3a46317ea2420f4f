package check

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"memtrace/internal/sanitize"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the outcome as JUnit's XML: a suite for each trace, a case for each gate.
func JUnit(w io.Writer, o *Outcome) error {
	all := junitSuites{Name: "memtrace check"}
	for _, group := range o.byTrace() {
		suite := junitSuite{Name: title(&group[0])}
		for i := range group {
			r := &group[i]
			c := junitCase{Class: "memtrace." + kindName(r), Name: sanitize.Text(gateName(r)),
				File: sanitize.Text(r.File), Line: r.Line}
			text := sanitize.Text(r.Text)
			switch r.Status {
			case Failed:
				c.Failure = &junitProblem{text, kindName(r), text}
				suite.Failures++
			case Broken:
				c.Error = &junitProblem{text, kindName(r), text}
				suite.Errors++
			default:
				c.Out = sanitize.Text(r.remark())
			}
			suite.Cases = append(suite.Cases, c)
		}
		suite.Tests = len(suite.Cases)
		all.Tests, all.Failures, all.Errors = all.Tests+suite.Tests, all.Failures+suite.Failures,
			all.Errors+suite.Errors
		all.Suites = append(all.Suites, suite)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit's XML: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

// kindName is a result's kind for programs that sort by it.
func kindName(r *Result) string {
	if r.Kind == "" {
		return "trace"
	}
	return r.Kind
}

func gateName(r *Result) string {
	if r.Gate == "" {
		return "the trace is complete"
	}
	return r.Gate
}

// SARIF writes what did not pass as SARIF 2.1.0. A result without a place in the sources is at the budget, or else at
// the trace: GitHub refuses a whole file for one result without a location (github/codeql-action, issue 2459).
func SARIF(w io.Writer, o *Outcome, root string) error {
	type object = map[string]any
	results, rules := []object{}, []object{}
	known := map[string]bool{}
	for i := range o.Results {
		r := &o.Results[i]
		if r.Status == Passed {
			continue
		}
		kind := kindName(r)
		if !known[kind] {
			known[kind] = true
			text := map[string]string{KindMax: "Memory is over its limit",
				KindCompare: "Memory grew beyond its baseline", KindAssert: "A condition on memory does not hold"}[kind]
			rules = append(rules, object{"id": kind,
				"shortDescription": object{"text": cmp.Or(text, "The trace cannot be checked")}})
		}
		file, line := sourceFile(r.File, root), r.Line
		if file == "" {
			file, line = cmp.Or(sourceFile(o.Budget, root), filepath.ToSlash(r.Trace), BudgetFile), 1
		}
		results = append(results, object{"ruleId": kind, "level": "error",
			"message": object{"text": sanitize.Text(gateName(r) + ": " + r.Text)},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": (&url.URL{Path: file}).String()},
				"region":           object{"startLine": max(line, 1)}}}}})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	err := e.Encode(object{"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"runs": []object{{"tool": object{"driver": object{"name": "memtrace check", "rules": rules}},
			"results": results}}})
	if err != nil {
		return fmt.Errorf("write SARIF: %w", err)
	}
	return nil
}

// sourceFile is a path from the root of the sources, "" of a file elsewhere, which no viewer could show.
func sourceFile(path, root string) string {
	if path == "" || root == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		return filepath.ToSlash(filepath.Clean(path))
	}
	relative, err := filepath.Rel(root, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return ""
	}
	return filepath.ToSlash(relative)
}
