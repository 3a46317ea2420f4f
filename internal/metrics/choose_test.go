package metrics

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

func sum(parts []Part) (total float64) {
	for _, p := range parts {
		total += p.Value
	}
	return total
}

// Whatever comes and goes, there are never more than the limit and the rest, nothing is lost, and a key that has a
// series keeps it until a larger one comes.
func TestChooser(t *testing.T) {
	c := NewChooser(3)
	for _, step := range []struct {
		parts, want []Part
	}{
		{nil, []Part{}},
		{[]Part{{"a", 5}, {"b", 3}}, []Part{{"a", 5}, {"b", 3}}},
		{[]Part{{"b", 3}}, []Part{{"a", 0}, {"b", 3}}},
		{[]Part{{"b", 3}, {"c", 2}, {"d", 1}}, []Part{{"a", 0}, {"b", 3}, {"c", 2}, {Others, 1}}},
		{[]Part{{"b", 3}, {"c", 1}, {"d", 2}}, []Part{{"a", 0}, {"b", 3}, {"c", 1}, {Others, 2}}},
		{[]Part{{"d", 4}}, []Part{{"a", 0}, {"d", 4}, {"b", 0}, {Others, 0}}},
		{[]Part{{Others, 9}, {"e", 1}}, []Part{{"a", 0}, {"d", 0}, {"b", 0}, {Others, 10}}},
		{nil, []Part{{"a", 0}, {"d", 0}, {"b", 0}, {Others, 0}}},
	} {
		if got := c.Choose(step.parts); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%v became %v, want %v", step.parts, got, step.want)
		}
	}
}

func TestChooserIsBounded(t *testing.T) {
	c, random := NewChooser(20), rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var parts []Part
		for range 500 {
			parts = append(parts, Part{fmt.Sprint("key", random.IntN(100000)), float64(random.IntN(1000))})
		}
		got := c.Choose(parts)
		if len(got) > 21 || sum(got) != sum(parts) || len(c.highest) > maxRemembered {
			t.Fatalf("%d series, %v of %v, %d remembered", len(got), sum(got), sum(parts), len(c.highest))
		}
	}
}
