package rewrite

import (
	"bytes"
	"encoding/json"
	"io"
)

// reportPlace is where a text is in a report.
type reportPlace struct {
	key    string // the name of the value or, in a list, of the list
	parent string // the name of the object that holds it
	by     string // what the rows around it are grouped by; empty outside of such
	owner  string // owner of the row that it is in; empty outside rows
	index  int    // in a list
}

// editReport passes every text of a JSON report through edit, which may also leave it out. Names of values stay;
// numbers stay as they are written. A report that is not JSON is dropped as a whole.
func editReport(report string, edit func(at reportPlace, text string) (edited string, keep bool)) (
	edited string, keep bool) {
	in := json.NewDecoder(bytes.NewReader([]byte(report)))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return "", false
	}
	if _, err := in.Token(); err != io.EOF {
		return "", false // something follows
	}
	value, keep = editValue(value, reportPlace{}, edit)
	if !keep {
		return "", false
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", false
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), true
}

func editValue(value any, at reportPlace, edit func(reportPlace, string) (string, bool)) (edited any, keep bool) {
	switch v := value.(type) {
	case string:
		return edit(at, v)
	case map[string]any:
		inner := reportPlace{parent: at.key, by: at.by}
		if by, ok := v["by"].(string); ok {
			inner.by = by
		}
		inner.owner, _ = v["owner"].(string)
		for key, child := range v {
			inner.key = key
			if v[key], keep = editValue(child, inner, edit); !keep {
				delete(v, key)
			}
		}
		return v, true
	case []any:
		kept := v[:0]
		for i, child := range v {
			at.index = i
			if child, keep := editValue(child, at, edit); keep {
				kept = append(kept, child)
			}
		}
		return kept, true
	}
	return value, true
}
