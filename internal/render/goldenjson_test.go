package render

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// checkJSON compares the fields that the case is about: those that its option json names, or all.
func (g *golden) checkJSON(t *testing.T, whole string) {
	t.Helper()
	if len(g.fields) == 0 {
		g.check(t, "json", whole)
		return
	}
	for _, field := range g.fields {
		if !isNonEmpty(chosen(t, json.RawMessage(whole), []string{field})) {
			t.Errorf("the JSON has no %s", field)
		}
	}
	kept := chosen(t, json.RawMessage(whole), g.fields)
	g.check(t, "json", written(t, func(w io.Writer) error { return WriteJSON(w, kept) }))
}

// chosen is the values in JSON at paths like oom.events.sample. They lead through arrays; ledgers:tag is those elements
// of the array whose field "by" is "tag".
func chosen(t *testing.T, raw json.RawMessage, paths []string) any {
	t.Helper()
	if slices.Contains(paths, "") {
		return raw
	}
	switch raw[0] {
	case '[':
		kept := []any{}
		for _, element := range decoded[[]json.RawMessage](t, raw) {
			if below := pathsBelow(paths, elementName(t, element)); len(below) > 0 {
				kept = append(kept, chosen(t, element, below))
			}
		}
		return kept
	case '{':
		kept := make(map[string]any)
		for name, value := range decoded[map[string]json.RawMessage](t, raw) {
			if below := pathsBelow(paths, "."+name); len(below) > 0 {
				kept[name] = chosen(t, value, below)
			}
		}
		return kept
	}
	return json.RawMessage("null")
}

// pathsBelow is the rest of those paths that lead through a step: a field, written .name, or an element, written :name.
// A path without a step for an array leads through all of its elements.
func pathsBelow(paths []string, step string) (below []string) {
	for _, path := range paths {
		if path[0] != '.' && path[0] != ':' {
			path = "." + path
		}
		end := strings.IndexAny(path[1:], ".:") + 1
		if end == 0 {
			end = len(path)
		}
		switch {
		case path[:end] == step:
			below = append(below, path[end:])
		case step[0] == ':' && path[0] == '.':
			below = append(below, path)
		}
	}
	return below
}

func elementName(t *testing.T, element json.RawMessage) string {
	if element[0] != '{' {
		return ":"
	}
	return ":" + decoded[struct{ By string }](t, element).By
}

func decoded[T any](t *testing.T, raw json.RawMessage) (value T) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// isNonEmpty: a path led to a field, not only to objects and arrays above it.
func isNonEmpty(kept any) bool {
	switch kept := kept.(type) {
	case []any:
		return slices.ContainsFunc(kept, isNonEmpty)
	case map[string]any:
		for _, value := range kept {
			if isNonEmpty(value) {
				return true
			}
		}
		return false
	}
	return true
}
