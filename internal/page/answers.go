package page

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"memtrace/analyzer/report"
)

// Answers answers the questions of a page that does not hold its blocks. It may be used by several goroutines.
type Answers struct {
	mu   sync.Mutex
	past *past
	data data
}

// NewAnswers returns the answers about the blocks of a summary, which must have History; nil if that has none.
func NewAnswers(s *report.Summary) (*Answers, error) {
	if s.History == nil || len(s.History.Blocks) == 0 {
		return nil, nil
	}
	d, _, err := dataOf(s, Options{Remote: true})
	if err != nil {
		return nil, err
	}
	return &Answers{past: newPast(s.History, d.End), data: d}, nil
}

// ErrQuestion is the error of an unknown question.
var ErrQuestion = errors.New("no such question")

// maxColumns bounds what one answer may cost: wider screens are not made.
const maxColumns = 16_384

// questions are the requests of remoteSource in source.js.
var questions = map[string]func(*Answers, *values) any{
	"columns": (*Answers).columns,
	"moment":  (*Answers).moment,
	"largest": (*Answers).largest,
	"weights": func(a *Answers, v *values) any {
		by := v.below("by", len(a.data.By))
		if v.err != nil {
			return nil
		}
		return a.past.weights(a.groups(by), len(a.data.Keys[by]))
	},
	"event": func(a *Answers, v *values) any { return one(a.past.at(v.number("position"), v.axis())) },
	"time":  func(a *Answers, v *values) any { return one(int(a.past.h.Times[a.event(v, "event")])) },
	"highest": func(a *Answers, v *values) any {
		by := v.axis()
		return one(a.past.highest(a.past.at(v.number("from"), by), a.past.at(v.number("to"), by)))
	},
	"summit": func(a *Answers, v *values) any {
		return one(a.past.summit(a.event(v, "event"), int(v.number("direction"))))
	},
	"segments": func(a *Answers, v *values) any { return a.past.segments(a.event(v, "event")) },
}

func one(value int) any { return map[string]int{"value": value} }

// Answer returns the data of a request's JSON. Errors: ErrQuestion, or an invalid parameter.
func (a *Answers) Answer(question string, given url.Values) (any, error) {
	ask, known := questions[question]
	if !known {
		return nil, ErrQuestion
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	v := &values{given: given}
	answer := ask(a, v)
	if v.err != nil {
		return nil, v.err
	}
	return answer, nil
}

func (a *Answers) groups(by int) []int {
	list := make([]int, len(a.data.Owners))
	for i, o := range a.data.Owners {
		list[i] = o.Keys[by]
	}
	return list
}

func (a *Answers) event(v *values, name string) int { return v.below(name, len(a.past.h.Times)) }

func (a *Answers) columns(v *values) any {
	from, to, count, by := v.number("from"), v.number("to"), v.below("count", maxColumns), v.below("by", len(a.data.By))
	if v.err == nil && (count == 0 || to <= from) {
		v.err = fmt.Errorf("columns: nothing lies from %g to %g", from, to)
	}
	if v.err != nil {
		return nil
	}
	shown := v.list("shown", len(a.data.Keys[by]))
	layers := len(shown)
	layerOf := a.groups(by)
	for i, group := range layerOf {
		if layerOf[i] = slices.Index(shown, group); layerOf[i] < 0 {
			layerOf[i], layers = len(shown), len(shown)+1
		}
	}
	if v.err != nil {
		return nil
	}
	p := a.past.columns(from, to, count, v.axis(), layerOf, layers)
	p.Layers = layers
	return p
}

func (a *Answers) moment(v *values) any {
	event, edge := a.event(v, "event"), -1
	answer := map[string]any{}
	if v.given.Has("edge") {
		edge = int(max(v.number("edge"), -1))
		if edge >= len(a.past.h.Times) {
			v.err = fmt.Errorf("edge: there are %d events", len(a.past.h.Times))
		}
	}
	if v.err != nil {
		return nil
	}
	if v.given.Has("edge") {
		answer["before"], answer["since"], answer["edge_time"] = a.past.heldAt(edge, -1), a.past.heldAt(event, edge),
			int64(0)
		if edge >= 0 {
			answer["edge_time"] = a.past.h.Times[edge]
		}
	}
	answer["time"], answer["live"], answer["lives"] = a.past.h.Times[event], a.past.heldAt(event, -1),
		a.past.livesBetween(edge, event)
	return answer
}

func (a *Answers) largest(v *values) any {
	event, limit := a.event(v, "event"), v.below("limit", 1001)
	if v.err != nil {
		return nil
	}
	find := strings.ToLower(v.given.Get("find"))
	owners := make([]bool, len(a.data.Owners))
	for i := range owners {
		owners[i] = strings.Contains(strings.ToLower(a.blockName(i)), find)
	}
	if v.given.Has("layer") { // of the picture, whose layers are shown, and a last one of all others
		by := v.below("by", len(a.data.By))
		if v.err != nil {
			return nil
		}
		shown := v.list("shown", len(a.data.Keys[by]))
		layer := v.below("layer", len(shown)+1)
		for i, group := range a.groups(by) {
			if n := slices.Index(shown, group); layer != n && (n >= 0 || layer < len(shown)) {
				owners[i] = false
			}
		}
		if v.err != nil {
			return nil
		}
	}
	return a.past.largest(event, limit, owners)
}

// blockName is the name of an owner's block in tables: see blockName of tables.js.
func (a *Answers) blockName(owner int) string {
	keys := a.data.Owners[owner].Keys
	place, module := max(slices.Index(a.data.By, "inner"), 0), slices.Index(a.data.By, byModule)
	if each := slices.Index(a.data.By, byEachModule); each >= 0 {
		module = each
	}
	name := a.data.Keys[place][keys[place]]
	if module < 0 {
		return name
	}
	if in := a.data.Keys[module][keys[module]]; in != "" && (in[0] == '_' || in[0]|0x20 >= 'a' && in[0]|0x20 <= 'z') {
		return name + "  ·  " + in
	}
	return name
}

// values are the parameters of a question; the first invalid one is kept as the error, and read as 0.
type values struct {
	given url.Values
	err   error
}

func (v *values) number(name string) float64 {
	n, err := strconv.ParseFloat(v.given.Get(name), 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1<<62 {
		v.fail(name)
		return 0
	}
	return n
}

// below is a whole number from 0 to less than a limit.
func (v *values) below(name string, limit int) int {
	n := v.number(name)
	if n != math.Trunc(n) || n < 0 || n >= float64(limit) {
		v.fail(name)
		return 0
	}
	return int(n)
}

// list is whole numbers, each below a limit.
func (v *values) list(name string, limit int) []int {
	list := []int{}
	if v.given.Get(name) == "" {
		return list
	}
	for _, text := range strings.Split(v.given.Get(name), ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= limit {
			v.fail(name)
			return []int{}
		}
		list = append(list, n)
	}
	return list
}

func (v *values) axis() axis { return axis(v.given.Get("axis") == "events") }

func (v *values) fail(name string) {
	if v.err == nil {
		v.err = fmt.Errorf("%s=%q: no such value", name, v.given.Get(name))
	}
}
